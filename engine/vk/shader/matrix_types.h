#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/target.h"

namespace halfstep::vk {

/// The shader with cooperative matrices of bf16 (SPV_KHR_bfloat16) or E4M3 (SPV_EXT_float8) in place of f16: a variant
/// of each kernel serves all. As it is for f16.
std::vector<std::uint32_t> with_matrices_of(plan::MatrixType type, std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
