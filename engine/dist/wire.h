#pragma once

#include <halfstep/exchange.h>

#include <cstddef>
#include <cstdint>
#include <span>

/// How numbers travel between ranks, and how they are added.
namespace halfstep::dist {

/// Values that share a power of two in f16.
inline constexpr std::size_t block = 128;

/// Bytes that `count` values take on the wire.
std::size_t wire_bytes(DType type, std::size_t count);

/// The most values that one operation exchanges: MPI counts in ints the bytes of all ranks' parts.
inline constexpr std::size_t most_values = std::size_t{1} << 27;

/// Likewise of a sum of which the ranks' parts end at `ends`: MPI also counts the bytes of all ranks' terms of one
/// part, and one rank's part may be all that an operation exchanges. Whole blocks, so that the blocks of a part are
/// those of the whole.
std::size_t most_values_of(std::span<const std::size_t> ends);

/// Writes values as they travel, into wire_bytes() of `bytes`. `place` is that of the first in its sum, which with
/// `stream` and the format's noise keys stochastic rounding. What is not finite stays so.
void encode(std::span<const float> values, const WireFormat& format, std::uint32_t stream, std::uint64_t place,
            std::span<std::byte> bytes);
/// The values that encode() wrote.
void decode(std::span<const std::byte> bytes, DType type, std::span<float> values);

/// sums += terms, in f32; subnormal results become 0, so that a device that flushes them gets no other number.
void add(std::span<const float> terms, std::span<float> sums);

}  // namespace halfstep::dist
