#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::testing {

/// The shader rewritten so that all loops of an invocation end after `limit` rounds in total, as on lavapipe of Mesa 22
/// after 65,535. Throws Error if the words are not SPIR-V.
std::vector<std::uint32_t> with_loop_limit(std::span<const std::uint32_t> words, std::uint32_t limit);

}  // namespace halfstep::testing
