#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vk/optimize/passes.h"

namespace halfstep::vk {

using ir::Constants;

/// Part of the names of files that keep results: counts up where these change.
constexpr int specializer_revision = 2;

/// The shader with its specialization constants fixed and folded: code that cannot be reached, reads and bindings that
/// are not used are removed, calls are inlined, and variables become values. It computes the same as before, in the
/// same order. Drivers do this too, but some (SwiftShader) only after their optimizer has run, when it is too late to
/// turn an array of registers into registers. A shader that is no SPIR-V, or has an instruction that
/// vk/shader/opcodes.def does not know, is left to the driver as it is.
std::vector<std::uint32_t> specialized(std::span<const std::uint32_t> words, const Constants& constants);

}  // namespace halfstep::vk
