#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::io {

/// An image of bytes {height, width, channels}, in host memory.
struct DecodedImage {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<std::uint8_t> bytes{};
};

/// The largest image that is decoded, in pixels: a small file can claim any size.
inline constexpr std::uint64_t most_pixels = std::uint64_t{1} << 26;

/// Decodes a PNG or JPEG file's contents to `channels` channels: 3 (RGB) or 1 (grey). The stored numbers are used as
/// they are, whatever gamma or colour profile a file claims, so that the two formats give a model the same inputs. 16
/// bits are scaled to 8, CMYK is converted to RGB. Transparent pixels are blended onto black. The EXIF orientation is
/// applied; damaged EXIF data is ignored. Throws Error with a one-line reason if the image is truncated, damaged, or
/// neither PNG nor JPEG.
DecodedImage decode_image(std::span<const std::uint8_t> file, std::int64_t channels);

/// The decoders of the two formats.
DecodedImage decode_png(std::span<const std::uint8_t> file, std::int64_t channels);
DecodedImage decode_jpeg(std::span<const std::uint8_t> file, std::int64_t channels);

/// The grey of a colour of bytes, by the weights of JPEG's luminance.
inline std::uint8_t grey_of(std::uint32_t red, std::uint32_t green, std::uint32_t blue) {
  return static_cast<std::uint8_t>((299 * red + 587 * green + 114 * blue + 500) / 1000);
}

/// The orientation, 1 to 8, from EXIF data (starting at their TIFF header); 1, upright, if they contain none or are
/// damaged.
int exif_orientation(std::span<const std::uint8_t> exif);

/// Applies the orientation to the stored image: mirrors it, rotates it or both.
DecodedImage upright(DecodedImage stored, std::size_t channels, int orientation);

/// Throws Error unless an image of these extents has at least one pixel and at most most_pixels.
void check_extents(std::uint64_t height, std::uint64_t width);

}  // namespace halfstep::io
