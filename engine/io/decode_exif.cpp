// EXIF data is a TIFF file with tags about an image: an 8-byte header with the byte order and the offset of a
// directory, then the directory, with 12 bytes for each tag: number, type, count, value.
#include <algorithm>
#include <array>
#include <cstddef>

#include "io/decode_image.h"

namespace halfstep::io {

namespace {

/// Reads integers in a given byte order from data that may be truncated anywhere.
class TiffReader {
 public:
  TiffReader(std::span<const std::uint8_t> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  /// The integer of `size` bytes at `offset`; 0 if it is beyond the end of the data.
  std::uint32_t number(std::uint64_t offset, std::uint64_t size) const {
    if (size > bytes_.size() || offset > bytes_.size() - size) return 0;
    std::uint32_t value = 0;
    for (std::uint64_t i = 0; i < size; i++) {
      value = value << 8U | bytes_[offset + (big_endian_ ? i : size - 1 - i)];
    }
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::span<const std::uint8_t> exif) {
  constexpr std::uint32_t orientation_tag = 0x0112;
  constexpr std::uint32_t short_type = 3;
  constexpr std::array<std::uint8_t, 4> little{'I', 'I', 42, 0};
  constexpr std::array<std::uint8_t, 4> big{'M', 'M', 0, 42};
  if (exif.size() < 8) return 1;
  const bool big_endian = std::ranges::equal(exif.first(4), big);
  if (!big_endian && !std::ranges::equal(exif.first(4), little)) return 1;
  const TiffReader tiff(exif, big_endian);
  const std::uint64_t directory = tiff.number(4, 4);
  const std::uint64_t tags = tiff.number(directory, 2);
  for (std::uint64_t i = 0; i < tags; i++) {
    const std::uint64_t tag = directory + 2 + 12 * i;
    if (tiff.number(tag, 2) != orientation_tag) continue;
    const std::uint32_t value = tiff.number(tag + 8, 2);
    const bool valid =
        tiff.number(tag + 2, 2) == short_type && tiff.number(tag + 4, 4) == 1 && value >= 1 && value <= 8;
    return valid ? static_cast<int>(value) : 1;
  }
  return 1;
}

DecodedImage upright(DecodedImage stored, std::size_t channels, int orientation) {
  if (orientation <= 1 || orientation > 8) return stored;
  // Orientations 5 to 8 swap rows and columns; then these mirror the columns or the rows of the stored image.
  const bool transposed = orientation >= 5;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  DecodedImage image;
  image.height = transposed ? stored.width : stored.height;
  image.width = transposed ? stored.height : stored.width;
  image.bytes.resize(stored.bytes.size());
  auto* out = image.bytes.data();
  for (std::size_t y = 0; y < image.height; y++) {
    for (std::size_t x = 0; x < image.width; x++) {
      std::size_t from_y = transposed ? x : y;
      std::size_t from_x = transposed ? y : x;
      if (mirror_y) from_y = stored.height - 1 - from_y;
      if (mirror_x) from_x = stored.width - 1 - from_x;
      const auto* pixel = stored.bytes.data() + (from_y * stored.width + from_x) * channels;
      out = std::copy_n(pixel, channels, out);
    }
  }
  return image;
}

}  // namespace halfstep::io
