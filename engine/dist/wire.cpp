#include "dist/wire.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/philox.h"
#include "graph/dtype.h"

namespace halfstep::dist {
namespace {

/// Random words for the values from `place` on, a multiple of 4.
std::array<std::uint32_t, 4> draw(std::uint64_t place, std::uint32_t stream, std::uint64_t noise) {
  constexpr std::uint32_t wire_stream = 0x57495245;  // apart from every other use of the key
  const std::uint64_t quad = place / 4;
  return process::philox4x32(
      {static_cast<std::uint32_t>(quad), static_cast<std::uint32_t>(quad >> 32), stream, wire_stream},
      process::philox_key(noise));
}

/// The pattern next to `bits` in magnitude, larger or smaller, of the same sign.
std::uint16_t neighbour(std::uint16_t bits, bool larger) {
  return static_cast<std::uint16_t>(larger ? bits + 1 : bits - 1);
}

/// One of the two numbers around `value`, each as likely as the other is far.
std::uint16_t rounded_at_random(const graph::Narrow& narrow, float value, std::uint32_t word) {
  const std::uint16_t nearest = narrow.bits_of(value);
  const float found = narrow.value_of(nearest);
  if (!std::isfinite(found) || found == value) return nearest;
  const bool above = std::abs(found) > std::abs(value);
  const std::uint16_t other = neighbour(nearest, !above);
  const float next = narrow.value_of(other);
  if (!std::isfinite(next)) return nearest;
  const float distance = std::abs(value - found) / std::abs(next - found);
  return static_cast<float>(word >> 8) * 0x1p-24F < distance ? other : nearest;
}

/// Rounds values times 2^power into 16-bit words.
void round_all(std::span<const float> values, int power, const WireFormat& format, std::uint32_t stream,
               std::uint64_t place, std::byte* words) {
  const graph::Narrow& narrow = *graph::info(format.type).narrow;
  const float factor = std::ldexp(1.0F, power);
  if (format.rounding == Rounding::nearest) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t bits = narrow.bits_of(values[i] * factor);
      std::memcpy(words + 2 * i, &bits, sizeof bits);
    }
    return;
  }
  std::array<std::uint32_t, 4> draws{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || (place + i) % 4 == 0) draws = draw(place + i, stream, format.noise);
    const std::uint16_t bits = rounded_at_random(narrow, values[i] * factor, draws[(place + i) % 4]);
    std::memcpy(words + 2 * i, &bits, sizeof bits);
  }
}

/// What the block is multiplied by so that its largest finite value is below f16's largest, and close to it.
int power_of(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) {
    const float magnitude = std::abs(value);
    if (magnitude <= std::numeric_limits<float>::max()) largest = std::max(largest, magnitude);
  }
  if (largest == 0) return 0;
  return std::clamp(14 - std::ilogb(largest), -127, 127);
}

}  // namespace

std::size_t most_values_of(std::span<const std::size_t> ends) {
  std::size_t largest = 0;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    largest = std::max(largest, end - first);
    first = end;
  }
  // Equal parts may be rounded up to whole blocks.
  if (largest * ends.size() <= 2 * most_values) return most_values;
  return std::max(block, most_values / ends.size() / block * block);
}

std::size_t wire_bytes(DType type, std::size_t count) {
  if (type == DType::f32) return 4 * count;
  if (type == DType::bf16) return 2 * count;
  return 2 * count + (count + block - 1) / block;  // a byte for each block's power of two
}

void encode(std::span<const float> values, const WireFormat& format, std::uint32_t stream, std::uint64_t place,
            std::span<std::byte> bytes) {
  if (format.type == DType::f32) {
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
    return;
  }
  if (format.type == DType::bf16) return round_all(values, 0, format, stream, place, bytes.data());
  std::byte* powers = bytes.data() + 2 * values.size();
  for (std::size_t first = 0; first < values.size(); first += block) {
    const std::span<const float> part = values.subspan(first, std::min(block, values.size() - first));
    const int power = power_of(part);
    powers[first / block] = static_cast<std::byte>(power + 128);
    round_all(part, power, format, stream, place + first, bytes.data() + 2 * first);
  }
}

void decode(std::span<const std::byte> bytes, DType type, std::span<float> values) {
  if (type == DType::f32) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size_bytes());
    return;
  }
  constexpr float largest_f32 = std::numeric_limits<float>::max();
  const graph::Narrow& narrow = *graph::info(type).narrow;
  const std::byte* powers = bytes.data() + 2 * values.size();
  float factor = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == DType::f16 && i % block == 0) factor = std::ldexp(1.0F, 128 - static_cast<int>(powers[i / block]));
    std::uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, sizeof bits);
    const float value = narrow.value_of(bits);
    values[i] = value * factor;
    // Rounding may have made it a power of two that f32 does not have.
    if (std::isinf(values[i]) && std::isfinite(value)) values[i] = std::copysign(largest_f32, value);
  }
}

void add(std::span<const float> terms, std::span<float> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float sum = sums[i] + terms[i];
    sums[i] = std::abs(sum) < std::numeric_limits<float>::min() ? 0.0F : sum;  // NaN stays
  }
}

}  // namespace halfstep::dist
