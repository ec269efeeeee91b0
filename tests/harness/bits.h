#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace halfstep::testing {

/// FNV-1a of the bits of numbers, float, double or bytes, each taken as one word.
template <typename Number>
std::uint64_t hash_of_bits(const std::vector<Number>& values) {
  using Wide = std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>;
  using Word = std::conditional_t<sizeof(Number) == 1, std::uint8_t, Wide>;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const Number value : values) hash = (hash ^ std::bit_cast<Word>(value)) * 0x100000001b3;
  return hash;
}

}  // namespace halfstep::testing
