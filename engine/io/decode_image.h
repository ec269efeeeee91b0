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

/// No image with more pixels is decoded: a small file can claim any size.
inline constexpr std::uint64_t most_pixels = std::uint64_t{1} << 26;

/// Decodes a PNG or JPEG file's contents to `channels` channels: 3 (red, green, blue) or 1 (grey). Transparent pixels
/// lie on black. CMYK colours are converted to red, green and blue with no colour profile. The image is turned the way
/// that its EXIF orientation says; EXIF data that are broken turn nothing. Throws Error that says what is wrong with
/// the image, in one line, where it is cut short, broken, or neither of the two.
DecodedImage decode_image(std::span<const std::uint8_t> file, std::int64_t channels);

/// The two that it chooses from.
DecodedImage decode_png(std::span<const std::uint8_t> file, std::int64_t channels);
DecodedImage decode_jpeg(std::span<const std::uint8_t> file, std::int64_t channels);

/// The orientation, 1 to 8, that EXIF data (from their TIFF header on) give an image; 1, upright, where they give none
/// or are broken.
int exif_orientation(std::span<const std::uint8_t> exif);

/// The image of `channels` channels as it is to be seen, from how it is stored with this orientation: mirrored,
/// rotated or both.
DecodedImage upright(DecodedImage stored, std::size_t channels, int orientation);

/// Throws Error unless an image of these extents has pixels, and no more than most_pixels.
void check_extents(std::uint64_t height, std::uint64_t width);

}  // namespace halfstep::io
