#pragma once

#include <halfstep/ops.h>

#include "reference/array.h"

namespace halfstep::reference {

Array max_pool2d(const Array& images, const Pool2dOptions& options);
Array adaptive_average_pool2d(const Array& images, const Pair& size);
Array adaptive_max_pool2d(const Array& images, const Pair& size);
Array average_pool2d(const Array& images, const Pool2dOptions& options);

}  // namespace halfstep::reference
