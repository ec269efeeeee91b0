#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// The shader with bf16 (SPV_KHR_bfloat16) in place of f16, for one that has that type in nothing but cooperative
/// matrices: a variant of each kernel serves both.
std::vector<std::uint32_t> with_bfloat16_matrices(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
