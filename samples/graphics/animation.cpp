#include "samples/graphics/animation.h"

#include <png.h>
#include <zlib.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

namespace samples {
namespace {

using PngBytes = std::vector<std::uint8_t>;

constexpr std::size_t signature_bytes = 8;

void append_word(PngBytes& bytes, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

std::size_t word_at(const PngBytes& bytes, std::size_t at) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes.at(at + i);
  return value;
}

void append_chunk(PngBytes& file, std::string_view type, const PngBytes& content) {
  append_word(file, content.size());
  const std::size_t begin = file.size();
  file.insert(file.end(), type.begin(), type.end());
  file.insert(file.end(), content.begin(), content.end());
  append_word(file, crc32(0, file.data() + begin, static_cast<uInt>(file.size() - begin)));
}

/// One image as a PNG file.
PngBytes encoded(const halfstep::Image& frame) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(frame.width);
  image.height = static_cast<png_uint_32>(frame.height);
  image.format = PNG_FORMAT_RGB;
  PngBytes file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  if (png_image_write_to_memory(&image, file.data(), &size, 0, frame.pixels.data(), 0, nullptr) == 0) {
    halfstep::fail("animation", image.message);
  }
  file.resize(size);
  return file;
}

/// The contents of a file's chunks of one type, one after another.
PngBytes chunks_of(const PngBytes& file, std::string_view wanted) {
  PngBytes all;
  for (std::size_t at = signature_bytes; at < file.size(); at += 12 + word_at(file, at)) {
    const std::string_view type(reinterpret_cast<const char*>(&file[at + 4]), 4);  // NOLINT: letters
    const auto content = file.begin() + static_cast<std::ptrdiff_t>(at) + 8;
    if (type == wanted) all.insert(all.end(), content, content + static_cast<std::ptrdiff_t>(word_at(file, at)));
  }
  return all;
}

PngBytes frame_control(const halfstep::Image& frame, std::size_t number, double seconds) {
  PngBytes control;
  append_word(control, number);
  append_word(control, static_cast<std::size_t>(frame.width));
  append_word(control, static_cast<std::size_t>(frame.height));
  append_word(control, 0);  // the place of its upper left corner
  append_word(control, 0);
  append_word(control, static_cast<std::size_t>(std::lround(seconds * 1000)) << 16 | 1000);
  control.insert(control.end(), {0, 0});  // it replaces the one before
  return control;
}

}  // namespace

void write_animation(const std::filesystem::path& path, const std::vector<halfstep::Image>& frames, double seconds) {
  PngBytes file;
  std::size_t number = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const PngBytes still = encoded(frames[i]);
    if (i == 0) {
      file.assign(still.begin(), still.begin() + signature_bytes);
      append_chunk(file, "IHDR", chunks_of(still, "IHDR"));
      PngBytes control;
      append_word(control, frames.size());
      append_word(control, 0);  // repeats: without end
      append_chunk(file, "acTL", control);
    }
    append_chunk(file, "fcTL", frame_control(frames[i], number++, i + 1 == frames.size() ? 4 * seconds : seconds));
    PngBytes data;
    if (i > 0) append_word(data, number++);
    const PngBytes pixels = chunks_of(still, "IDAT");
    data.insert(data.end(), pixels.begin(), pixels.end());
    append_chunk(file, i == 0 ? "IDAT" : "fdAT", data);
  }
  append_chunk(file, "IEND", {});
  const halfstep::Bytes parts[] = {std::as_bytes(std::span(file))};
  halfstep::write_atomically(path, parts);
}

}  // namespace samples
