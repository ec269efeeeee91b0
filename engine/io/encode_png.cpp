#include <halfstep/error.h>
#include <halfstep/image_folder.h>
#include <halfstep/process.h>

#include <fmt/format.h>
#include <png.h>

#include <cstddef>
#include <vector>

namespace halfstep {

void write_png(const std::filesystem::path& path, std::span<const std::uint8_t> pixels, std::int64_t height,
               std::int64_t width) {
  constexpr std::int64_t most = 65535;
  if (height < 1 || width < 1 || height > most || width > most) {
    fail(path.string(), fmt::format("expected a height and width from 1 to {}, got {} and {}", most, height, width));
  }
  if (std::ssize(pixels) != height * width * 3) {
    fail(path.string(),
         fmt::format("expected {} bytes of {{{}, {}, 3}}, got {}", height * width * 3, height, width, pixels.size()));
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::byte> file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  if (png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr) == 0) {
    fail(path.string(), fmt::format("the image cannot be encoded: {}", image.message));
  }
  const Bytes parts[] = {std::span(file).first(size)};
  write_atomically(path, parts);
}

}  // namespace halfstep
