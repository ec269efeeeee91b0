#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

namespace halfstep::ops {

/// Multiply-adds per element and round of multiply_adds().
constexpr std::int64_t multiply_adds_in_round = 48;

/// Measures the device's f32 arithmetic; not an operator for models. For every element x of an f32 tensor, whose last
/// axis is a multiple of 4: the sum of three numbers, which start as x, x + 1 and x + 2 and are set to number * factor
/// + term, 16 times per round.
Tensor multiply_adds(Tensor x, std::int32_t rounds, float factor, float term);

}  // namespace halfstep::ops
