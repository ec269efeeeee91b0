#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// The shader with what is pushed to it as constants: `pushed` are the bytes of its push constants from `first` on.
/// Reads of numbers of 32 bits, and of vectors of them, become these numbers; other reads stay.
std::vector<std::uint32_t> with_pushed_numbers(std::span<const std::uint32_t> words, std::uint32_t first,
                                               std::span<const std::byte> pushed);

}  // namespace halfstep::vk
