#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::testing {

/// The same shader, as a driver executes it that ends all loops of an invocation after `limit` rounds in total, as
/// lavapipe of Mesa 22 does after 65,535. Throws Error where the words are no SPIR-V.
std::vector<std::uint32_t> with_loop_limit(std::span<const std::uint32_t> words, std::uint32_t limit);

}  // namespace halfstep::testing
