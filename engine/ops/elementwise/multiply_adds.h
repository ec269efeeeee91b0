#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

namespace halfstep::ops {

/// Multiply-adds per element and round of multiply_adds().
constexpr std::int64_t multiply_adds_in_round = 192;

/// Measures the device's f32 arithmetic; not an operator for models. For every quad x of an f32 tensor, whose last axis
/// is a multiple of 4: of twelve numbers in a ring, the i-th of which starts as x[i mod 4] + i, each becomes itself *
/// factor plus the one after it, 64 times per round. y[e] is the sum of the numbers e, e + 4 and e + 8.
Tensor multiply_adds(Tensor x, std::int32_t rounds, float factor);

}  // namespace halfstep::ops
