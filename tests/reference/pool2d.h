#pragma once

#include <halfstep/ops.h>

#include "reference/array.h"

namespace halfstep::reference {

Array max_pool2d(const Array& images, const Pool2dOptions& options);
Array average_pool2d(const Array& images, const Pool2dOptions& options);

}  // namespace halfstep::reference
