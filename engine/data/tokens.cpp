#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include "base/files.h"

namespace halfstep {

Dataset read_tokens(const std::filesystem::path& file, const TokenWindows& windows) {
  const auto refuse = [&](std::string_view message) {
    fail(ErrorCode::bad_file, "tokens", fmt::format("{}: {}", file.string(), message));
  };
  if (windows.type != ElementType::u16 && windows.type != ElementType::u32) {
    fail("tokens", fmt::format("expected tokens of u16 or u32, got {}", name(windows.type)));
  }
  if (windows.length < 1 || windows.stride < 0) {
    fail("tokens", fmt::format("expected a positive length and a stride from 0 on, got {} and {}", windows.length,
                               windows.stride));
  }
  const process::MappedFile mapped = process::map_file(file);
  const auto size = static_cast<std::size_t>(bytes(windows.type));
  const std::size_t count = mapped.bytes.size() / size;
  if (mapped.bytes.size() % size != 0) {
    refuse(fmt::format("expected whole tokens of {}, got {} bytes", name(windows.type), mapped.bytes.size()));
  }
  if (count <= static_cast<std::uint64_t>(windows.length)) {
    refuse(fmt::format("expected a window of {} tokens and the one after it, got {} tokens", windows.length, count));
  }
  Field tokens{.name = "tokens",
               .type = windows.type,
               .shape = {windows.length},
               .bound = windows.vocabulary,
               .data = mapped.bytes,
               .owner = mapped.owner,
               .stride = windows.stride > 0 ? windows.stride : windows.length};
  Field targets = tokens;
  targets.name = "targets";
  targets.first = 1;
  return Dataset::of(file.string(), {std::move(tokens), std::move(targets)});
}

}  // namespace halfstep
