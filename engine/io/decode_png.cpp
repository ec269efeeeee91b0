#include <halfstep/error.h>

#include <fmt/format.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "io/decode_image.h"

namespace halfstep::io {

namespace {

/// libpng's own description of an image; what it allocated is freed with it.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(this); }
};

/// The contents of the eXIf chunk, which libpng's png_image does not provide; empty if there is no complete one.
std::span<const std::uint8_t> exif_chunk(std::span<const std::uint8_t> file) {
  constexpr std::array<std::uint8_t, 4> type{'e', 'X', 'I', 'f'};
  const auto number = [&](std::size_t at) {
    return std::uint32_t{file[at]} << 24U | std::uint32_t{file[at + 1]} << 16U | std::uint32_t{file[at + 2]} << 8U |
           std::uint32_t{file[at + 3]};
  };
  // After the signature, each chunk has a length, a type, data and a checksum of type and data.
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::size_t length = number(at);
    if (length > file.size() - at - 12) break;
    if (std::ranges::equal(file.subspan(at + 4, 4), type)) {
      const auto sum = crc32(0, file.data() + at + 4, static_cast<uInt>(length + 4));
      return sum == number(at + 8 + length) ? file.subspan(at + 8, length) : file.first(0);
    }
    at += length + 12;
  }
  return {};
}

}  // namespace

DecodedImage decode_png(std::span<const std::uint8_t> file, std::int64_t channels) {
  PngImage png;
  if (png_image_begin_read_from_memory(&png, file.data(), file.size()) == 0)
    fail(ErrorCode::bad_file, "png", png.message);
  check_extents(png.height, png.width);
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  DecodedImage image;
  image.height = png.height;
  image.width = png.width;
  image.bytes.resize(PNG_IMAGE_SIZE(png));
  const png_color black{0, 0, 0};
  // Rows are contiguous: a stride of 0.
  if (png_image_finish_read(&png, &black, image.bytes.data(), 0, nullptr) == 0)
    fail(ErrorCode::bad_file, "png", png.message);
  return upright(std::move(image), static_cast<std::size_t>(channels), exif_orientation(exif_chunk(file)));
}

}  // namespace halfstep::io
