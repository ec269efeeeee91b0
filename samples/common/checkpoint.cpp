#include "samples/common/checkpoint.h"

#include <fmt/format.h>

#include <cstdio>

namespace samples {

void warn_of_values_not_finite(const std::filesystem::path& path, const halfstep::CheckpointSummary& summary) {
  for (const halfstep::TensorSummary& tensor : summary.tensors) {
    if (tensor.not_finite == 0) continue;
    fmt::print(stderr, "warning: {}: '{}' has {} values that are not finite\n", path.string(), printable(tensor.name),
               tensor.not_finite);
  }
}

std::string printable(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte >= 0x20 && byte < 0x7F ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return line;
}

}  // namespace samples
