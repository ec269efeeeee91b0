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

/// Writes values as they travel, into wire_bytes() of `bytes`. `place` is that of the first among all that are
/// exchanged together, which with `stream` keys stochastic rounding. What is not finite stays so.
void encode(std::span<const float> values, const WireFormat& format, std::uint32_t stream, std::uint64_t place,
            std::span<std::byte> bytes);
/// The values that encode() wrote.
void decode(std::span<const std::byte> bytes, DType type, std::span<float> values);

/// sums += terms, in f32; subnormal results become 0, so that a device that flushes them gets no other number.
void add(std::span<const float> terms, std::span<float> sums);

}  // namespace halfstep::dist
