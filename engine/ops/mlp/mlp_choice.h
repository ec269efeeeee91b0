#pragma once

#include <string_view>
#include <vector>

#include "ops/mlp/mlp_kernels.h"
#include "plan/choice.h"

/// Networks as a plan::Choice: what to time, and what admits a kernel.
namespace halfstep::ops {

/// The way to compute a pass, of those of mlp_kernels(): the choice that the operator leaves.
MlpKernel chosen_mlp_kernel(plan::Lowering& out, MlpPass pass, const MlpForm& form);

/// Whether choices of this kind are between ways to compute a network.
bool is_mlp(std::string_view kind);
/// The checks that a kernel for choices of this kind must pass: the result and the gradients, against double; in f16
/// also the gradient of x where those between layers are subnormal. Throws Error if it is no such kind.
std::vector<plan::Trial> mlp_checks(std::string_view kind);

}  // namespace halfstep::ops
