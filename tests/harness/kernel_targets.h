#pragma once

#include <vector>

#include "plan/target.h"

namespace halfstep::testing {

/// Whether the driver's own rule takes kernels that load by address. Their loops are unrolled, and other drivers take
/// up to a minute to compile one.
bool takes_kernels_by_address();

/// Each GEMM kernel that this device has, as a target that forces it for the products that it can compute. Where the
/// driver's own rule takes none that load by address, one of each kind of these.
std::vector<plan::Target> kernel_targets();

/// The targets whose forms of attention differ. Software drivers compute small attention by products: those also with
/// the kernels that they have for large ones. SwiftShader takes seconds and a hundred megabytes to compile one of the
/// latter, and far more to compile one for GPUs, which lavapipe tests.
std::vector<plan::Target> attention_targets();

/// Whether it forces a kernel that loads by address.
bool loads_by_address(const plan::Target& target);

}  // namespace halfstep::testing
