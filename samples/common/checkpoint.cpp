#include "samples/common/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace samples {

namespace {

/// Bytes of the character that UTF-8 text begins with; 0 where it is a control character, or no UTF-8.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7F ? 1 : 0;
  const std::size_t length = byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (byte(0) < 0xC0 || byte(0) >= 0xF8 || text.size() < length) return 0;
  std::uint32_t code = byte(0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  // The shortest bytes for a code, which are no controls; no halves of UTF-16 pairs; nothing beyond Unicode.
  constexpr std::uint32_t least[] = {0xA0, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code >= least[length - 2] && !surrogate && code < 0x110000 ? length : 0;
}

}  // namespace

void warn_of_values_not_finite(const std::filesystem::path& path, const halfstep::CheckpointSummary& summary) {
  for (const halfstep::TensorSummary& tensor : summary.tensors) {
    if (tensor.not_finite == 0) continue;
    fmt::print(stderr, "warning: {}: '{}' has values that are not finite: {}\n", path.string(), printable(tensor.name),
               tensor.not_finite);
  }
}

std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    if (length > 0) {
      line += text.substr(0, length);
    } else {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return line;
}

}  // namespace samples
