#pragma once

#include <halfstep/halfstep.h>

#include <vector>

namespace halfstep::testing {

/// Updates a weight of 2 with these gradients, one per step, for every storage type of weights and states (f32, f16
/// with f32 masters, f16 alone; states in f32 and f16). Checks that the weight becomes `expected`, which was computed
/// in double.
void check_update(const Optimizer& optimizer, const std::vector<float>& gradients, double expected);

}  // namespace halfstep::testing
