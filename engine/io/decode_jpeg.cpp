// libjpeg reports errors by longjmp, which must not skip destructors. So its state is plain data (Decompressor), and
// each function that longjmp may leave has only such data.
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <utility>

// Must follow <cstdio>, which they need.
#include <jerror.h>
#include <jpeglib.h>

#include "io/decode_image.h"

namespace halfstep::io {

namespace {

struct Decompressor {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  std::jmp_buf on_error;
  std::array<char, JMSG_LENGTH_MAX> message;
};

Decompressor& decompressor(j_common_ptr jpeg) {
  return *static_cast<Decompressor*>(jpeg->client_data);
}

[[noreturn]] void give_up(j_common_ptr jpeg) {
  jpeg->err->format_message(jpeg, decompressor(jpeg).message.data());
  std::longjmp(decompressor(jpeg).on_error, 1);
}

// A warning (level -1) means that the data is damaged and the decoder fills in the rest. The exceptions harm nothing:
// extra bytes between two markers, which some cameras write; a version of JFIF other than 1, which says nothing of
// pixels; and a colour transform that Adobe's marker does not define, for which the usual one is taken.
void on_message(j_common_ptr jpeg, int level) {
  static constexpr std::array<int, 3> harmless{JWRN_EXTRANEOUS_DATA, JWRN_JFIF_MAJOR, JWRN_ADOBE_XFORM};
  if (level < 0 && std::ranges::find(harmless, jpeg->err->msg_code) == harmless.end()) give_up(jpeg);
}

void print_nothing(j_common_ptr) {}

constexpr int exif_marker = JPEG_APP0 + 1;

/// Reads the header. Returns false, with the message, on failure.
bool begin(Decompressor& d, const std::uint8_t* file, std::size_t size) {
  d.jpeg.err = jpeg_std_error(&d.errors);
  d.errors.error_exit = give_up;
  d.errors.emit_message = on_message;
  d.errors.output_message = print_nothing;
  d.jpeg.client_data = &d;
  if (setjmp(d.on_error) != 0) return false;
  jpeg_create_decompress(&d.jpeg);
  jpeg_mem_src(&d.jpeg, file, size);
  jpeg_save_markers(&d.jpeg, exif_marker, 0xFFFF);
  jpeg_read_header(&d.jpeg, TRUE);
  return true;
}

/// Decodes into rows of `stride` bytes.
bool decode(Decompressor& d, std::uint8_t* pixels, std::size_t stride) {
  if (setjmp(d.on_error) != 0) return false;
  jpeg_start_decompress(&d.jpeg);
  while (d.jpeg.output_scanline < d.jpeg.output_height) {
    JSAMPROW row = pixels + d.jpeg.output_scanline * stride;
    jpeg_read_scanlines(&d.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&d.jpeg);
  return true;
}

/// The EXIF data, starting at their TIFF header; empty if there are none. Other kinds of data use the same marker.
std::span<const std::uint8_t> exif_data(const Decompressor& d) {
  constexpr std::array<std::uint8_t, 6> name{'E', 'x', 'i', 'f', 0, 0};
  for (const jpeg_marker_struct* marker = d.jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const std::span<const std::uint8_t> data{marker->data, marker->data_length};
    if (data.size() >= name.size() && std::ranges::equal(data.first(name.size()), name)) {
      return data.subspan(name.size());
    }
  }
  return {};
}

/// Whether the image is CMYK. libjpeg converts YCCK to CMYK, but not to RGB.
bool is_cmyk(const Decompressor& d) {
  return d.jpeg.jpeg_color_space == JCS_CMYK || d.jpeg.jpeg_color_space == JCS_YCCK;
}

/// Converts CMYK to RGB or grey. Programs that write Adobe's marker store 255 for no ink, others 0.
std::vector<std::uint8_t> colours_of_inks(std::span<const std::uint8_t> inks, bool inverted, std::int64_t channels) {
  std::vector<std::uint8_t> colours;
  colours.reserve(inks.size() / 4 * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < inks.size(); i += 4) {
    const auto light = [&](std::size_t k) { return std::uint32_t{inverted ? inks[i + k] : 255U - inks[i + k]}; };
    const auto colour = [&](std::size_t k) { return (light(k) * light(3) + 127) / 255; };
    if (channels == 1) {
      colours.push_back(grey_of(colour(0), colour(1), colour(2)));
    } else {
      for (std::size_t k = 0; k < 3; k++) colours.push_back(static_cast<std::uint8_t>(colour(k)));
    }
  }
  return colours;
}

/// Owns a decompressor and destroys it on every exit of the function.
struct Owner {
  Decompressor d{};
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { jpeg_destroy_decompress(&d.jpeg); }
};

}  // namespace

DecodedImage decode_jpeg(std::span<const std::uint8_t> file, std::int64_t channels) {
  Owner owner;
  Decompressor& d = owner.d;
  if (!begin(d, file.data(), file.size())) fail(ErrorCode::bad_file, "jpeg", d.message.data());
  check_extents(d.jpeg.image_height, d.jpeg.image_width);
  const bool inks = is_cmyk(d);
  d.jpeg.out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  DecodedImage image;
  image.height = d.jpeg.image_height;
  image.width = d.jpeg.image_width;
  const std::size_t stride = std::size_t{image.width} * (inks ? 4 : static_cast<std::size_t>(channels));
  image.bytes.resize(image.height * stride);
  const int orientation = exif_orientation(exif_data(d));  // before jpeg_finish_decompress frees the data
  if (!decode(d, image.bytes.data(), stride)) fail(ErrorCode::bad_file, "jpeg", d.message.data());
  if (inks) image.bytes = colours_of_inks(image.bytes, d.jpeg.saw_Adobe_marker != FALSE, channels);
  return upright(std::move(image), static_cast<std::size_t>(channels), orientation);
}

}  // namespace halfstep::io
