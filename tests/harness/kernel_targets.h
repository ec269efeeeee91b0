#pragma once

#include <vector>

#include "plan/target.h"

namespace halfstep::testing {

/// Each GEMM kernel that this device has, as a target that forces it for the products that it can compute.
std::vector<plan::Target> kernel_targets();

}  // namespace halfstep::testing
