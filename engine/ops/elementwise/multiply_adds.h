#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

namespace halfstep::ops {

/// Multiply-adds that each element of multiply_adds() takes, for each round.
constexpr std::int64_t multiply_adds_in_round = 48;

/// A measure of the device's f32 arithmetic, not an operator of models. For every element x of an f32 tensor, whose
/// last axis is a multiple of 4: the sum of three numbers, which begin as x, x + 1 and x + 2 and become number * factor
/// + term, 16 times a round.
Tensor multiply_adds(Tensor x, std::int32_t rounds, float factor, float term);

}  // namespace halfstep::ops
