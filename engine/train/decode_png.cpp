#include <halfstep/error.h>

#include <fmt/format.h>
#include <png.h>

#include "train/decode_image.h"

namespace halfstep::train {

namespace {

/// libpng's own description of an image; what it allocated is freed with it.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(this); }
};

}  // namespace

DecodedImage decode_png(std::span<const std::uint8_t> file, std::int64_t channels) {
  PngImage png;
  if (png_image_begin_read_from_memory(&png, file.data(), file.size()) == 0) fail("png", png.message);
  check_extents(png.height, png.width);
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  DecodedImage image;
  image.height = png.height;
  image.width = png.width;
  image.bytes.resize(PNG_IMAGE_SIZE(png));
  const png_color black{0, 0, 0};
  // A row's bytes follow the last one's: a stride of 0.
  if (png_image_finish_read(&png, &black, image.bytes.data(), 0, nullptr) == 0) fail("png", png.message);
  return image;
}

}  // namespace halfstep::train
