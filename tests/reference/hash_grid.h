#pragma once

#include <halfstep/encodings.h>

#include "reference/array.h"

namespace halfstep::reference {

/// The features of each level at positions {n, d}: {n, levels * features}.
Array hash_grid(const Array& positions, const Array& table, const HashGridOptions& options);

}  // namespace halfstep::reference
