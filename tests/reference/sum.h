#pragma once

#include <vector>

#include "reference/array.h"

namespace halfstep::reference {

/// The sum over `axes`, or over all if empty; summed axes are dropped, or kept as 1.
Array sum(const Array& x, std::vector<std::int64_t> axes, bool keep);
Array mean(const Array& x, const std::vector<std::int64_t>& axes, bool keep);

}  // namespace halfstep::reference
