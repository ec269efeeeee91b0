#include <halfstep/error.h>

#include <fmt/format.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "io/decode_image.h"

namespace halfstep::io {

namespace {

/// libpng's state: plain data, since libpng reports errors by longjmp. A function that longjmp may leave has only such
/// data.
struct PngReader {
  png_structp png;
  png_infop info;
  std::span<const std::uint8_t> unread;
  std::jmp_buf on_error;
  std::array<char, 200> message{"libpng cannot be started"};
};

[[noreturn]] void on_png_error(png_structp png, png_const_charp message) {
  PngReader& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader.message.data(), reader.message.size(), "%s", message);
  std::longjmp(reader.on_error, 1);
}

// libpng only warns where it can still give every pixel.
void on_png_warning(png_structp, png_const_charp) {}

void read_from_memory(png_structp png, png_bytep to, std::size_t size) {
  PngReader& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (size > reader.unread.size()) png_error(png, "expected more bytes, got a truncated file");
  std::memcpy(to, reader.unread.data(), size);
  reader.unread = reader.unread.subspan(size);
}

/// Reads what precedes the pixels. Returns false, with the message, on failure.
bool read_header(PngReader& reader) {
  if (setjmp(reader.on_error) != 0) return false;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_png_error, on_png_warning);
  if (reader.png != nullptr) reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) return false;
  png_set_read_fn(reader.png, &reader, read_from_memory);
  // Damage is an error only in chunks that pixels depend on. The others, those of colour management among them, are
  // skipped, and so is tRNS: lost_transparency() looks for it.
  png_set_benign_errors(reader.png, 1);
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(reader.png, reader.info);
  return true;
}

/// Asks for bytes: of a palette's colours, of alpha where a colour is transparent, and of 16 bits the nearest 8.
/// Returns false, with the message, on failure.
bool ask_for_bytes(PngReader& reader) {
  if (setjmp(reader.on_error) != 0) return false;
  png_set_expand(reader.png);
  png_set_scale_16(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

/// Reads all pixels into consecutive rows.
bool read_pixels(PngReader& reader, std::uint8_t* pixels) {
  if (setjmp(reader.on_error) != 0) return false;
  const int passes =
      png_get_interlace_type(reader.png, reader.info) == PNG_INTERLACE_ADAM7 ? PNG_INTERLACE_ADAM7_PASSES : 1;
  const std::size_t stride = png_get_rowbytes(reader.png, reader.info);
  const png_uint_32 height = png_get_image_height(reader.png, reader.info);
  for (int pass = 0; pass < passes; pass++) {
    for (png_uint_32 y = 0; y < height; y++) png_read_row(reader.png, pixels + y * stride, nullptr);
  }
  return true;
}

/// Owns the state, and what libpng allocated for it.
struct PngOwner {
  PngReader reader{};
  PngOwner() = default;
  PngOwner(const PngOwner&) = delete;
  PngOwner& operator=(const PngOwner&) = delete;
  ~PngOwner() { png_destroy_read_struct(&reader.png, &reader.info, nullptr); }
};

/// Converts pixels of `stored` channels, 1 or 3 of colour and perhaps one of alpha, which is blended onto black.
std::vector<std::uint8_t> in_channels(std::span<const std::uint8_t> pixels, std::size_t stored, std::size_t channels) {
  std::vector<std::uint8_t> converted;
  converted.reserve(pixels.size() / stored * channels);
  const bool has_alpha = stored % 2 == 0;
  const std::size_t blue = stored < 3 ? 0 : 2;
  for (; !pixels.empty(); pixels = pixels.subspan(stored)) {
    const std::uint32_t alpha = has_alpha ? pixels[stored - 1] : 255;
    const auto colour = [&](std::size_t k) { return (pixels[k] * alpha + 127) / 255; };
    if (channels == 1) {
      converted.push_back(grey_of(colour(0), colour(blue / 2), colour(blue)));
    } else {
      for (const std::size_t k : {std::size_t{0}, blue / 2, blue}) {
        converted.push_back(static_cast<std::uint8_t>(colour(k)));
      }
    }
  }
  return converted;
}

/// A chunk's data, and whether its checksum is theirs.
struct PngChunk {
  std::span<const std::uint8_t> data;
  bool sound;
};

/// The first chunk of a type, if there is a complete one before those of the type `end`.
std::optional<PngChunk> find_chunk(std::span<const std::uint8_t> file, std::string_view type, std::string_view end) {
  const auto number = [&](std::size_t at) {
    return std::uint32_t{file[at]} << 24U | std::uint32_t{file[at + 1]} << 16U | std::uint32_t{file[at + 2]} << 8U |
           std::uint32_t{file[at + 3]};
  };
  // After the signature, each chunk has a length, a type, data and a checksum of type and data.
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::size_t length = number(at);
    if (length > file.size() - at - 12) break;
    const auto found = file.subspan(at + 4, 4);
    if (std::ranges::equal(found, type)) {
      const auto sum = crc32(0, file.data() + at + 4, static_cast<uInt>(length + 4));
      return PngChunk{file.subspan(at + 8, length), sum == number(at + 8 + length)};
    }
    if (std::ranges::equal(found, end)) break;
    at += length + 12;
  }
  return {};
}

/// Whether libpng skipped a damaged chunk that says which of the image's colours are transparent.
bool lost_transparency(const PngReader& reader, std::span<const std::uint8_t> file) {
  const bool has_alpha = (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_ALPHA) != 0;
  if (has_alpha || png_get_valid(reader.png, reader.info, PNG_INFO_tRNS) != 0) return false;
  return find_chunk(file, "tRNS", "IDAT").has_value();
}

/// The contents of the eXIf chunk; empty if there is no sound one.
std::span<const std::uint8_t> exif_chunk(std::span<const std::uint8_t> file) {
  const std::optional<PngChunk> chunk = find_chunk(file, "eXIf", "IEND");
  return chunk && chunk->sound ? chunk->data : file.first(0);
}

}  // namespace

DecodedImage decode_png(std::span<const std::uint8_t> file, std::int64_t channels) {
  PngOwner owner;
  PngReader& reader = owner.reader;
  const auto refuse = [&] { fail(ErrorCode::bad_file, "png", reader.message.data()); };
  reader.unread = file;
  if (!read_header(reader)) refuse();
  DecodedImage image;
  image.height = png_get_image_height(reader.png, reader.info);
  image.width = png_get_image_width(reader.png, reader.info);
  check_extents(image.height, image.width);
  if (lost_transparency(reader, file)) {
    fail(ErrorCode::bad_file, "png", "expected transparent colours in the chunk tRNS, got a damaged one");
  }
  if (!ask_for_bytes(reader)) refuse();
  const std::size_t stored = png_get_channels(reader.png, reader.info);
  const auto wanted = static_cast<std::size_t>(channels);
  image.bytes.resize(std::size_t{image.height} * image.width * stored);
  if (!read_pixels(reader, image.bytes.data())) refuse();
  if (stored != wanted) image.bytes = in_channels(image.bytes, stored, wanted);
  return upright(std::move(image), wanted, exif_orientation(exif_chunk(file)));
}

}  // namespace halfstep::io
