#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vk/command/memory.h"

namespace halfstep::vk {

// Copies for set-up and inspection: each submits, waits, and is ordered after all earlier submits and before all later
// ones. Size and offset may be any multiple of four; large copies go in pieces through a staging buffer.

/// Writes `bytes` into `target`, starting at `offset`.
void upload(Context& context, const Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes);

/// Reads `bytes` from `source`, starting at `offset`.
void download(Context& context, const Buffer& source, std::uint64_t offset, std::span<std::byte> bytes);

/// Sets every 32-bit word of a range to `word`; `offset` and `size` are multiples of four.
void fill(Context& context, const Buffer& target, std::uint64_t offset, std::uint64_t size, std::uint32_t word);

}  // namespace halfstep::vk
