#include "io/decode_image.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace halfstep::io {

void check_extents(std::uint64_t height, std::uint64_t width) {
  if (height == 0 || width == 0 || height > most_pixels / width) {
    fail(ErrorCode::bad_file, "image",
         fmt::format("expected 1 to {} pixels, got {} by {}", most_pixels, height, width));
  }
}

DecodedImage decode_image(std::span<const std::uint8_t> file, std::int64_t channels) {
  constexpr std::array<std::uint8_t, 8> png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  constexpr std::array<std::uint8_t, 3> jpeg{0xFF, 0xD8, 0xFF};
  const auto starts_with = [&](std::span<const std::uint8_t> start) {
    return file.size() >= start.size() && std::ranges::equal(file.first(start.size()), start);
  };
  if (starts_with(png)) return decode_png(file, channels);
  if (starts_with(jpeg)) return decode_jpeg(file, channels);
  fail(ErrorCode::bad_file, "image", "expected a PNG or JPEG file, got neither");
}

}  // namespace halfstep::io
