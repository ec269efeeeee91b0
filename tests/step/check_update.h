#pragma once

#include <halfstep/halfstep.h>

#include <vector>

namespace halfstep::testing {

/// Updates a weight of 2 with these gradients, one a step, wherever weights and the optimizer's states can be kept
/// (f32; f16 and bf16, with f32 masters and alone; states of f32 and of the narrow type), and checks that it becomes
/// `expected`, which was computed in double.
void check_update(const Optimizer& optimizer, const std::vector<float>& gradients, double expected);

}  // namespace halfstep::testing
