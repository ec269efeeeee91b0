#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

#include "plan/lowering.h"

namespace halfstep::ops {

/// What random numbers are drawn for; equal keys draw equal numbers, on every device.
struct NoiseKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t stream = 0;
};

/// x in f16, each value rounded up or down at random so that its expectation is x.
Tensor stochastic_cast(Tensor x, NoiseKey key);

/// Appends the dispatch that converts `from` to the type of `to`, rounding to nearest.
void lower_cast(plan::Lowering& out, plan::TensorId from, plan::TensorId to);

/// `tensor` if it is f32, otherwise a workspace with its values in f32.
plan::TensorId in_f32(plan::Lowering& out, plan::TensorId tensor);

}  // namespace halfstep::ops
