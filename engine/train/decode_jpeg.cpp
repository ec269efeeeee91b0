// libjpeg reports errors by longjmp, which must not cross anything with a destructor. So what it touches is plain data
// (Decompressor), and each function that may be jumped out of has only that.
#include <halfstep/error.h>

#include <fmt/format.h>

#include <array>
#include <csetjmp>
#include <cstdio>

// After <cstdio>, which they need.
#include <jerror.h>
#include <jpeglib.h>

#include "train/decode_image.h"

namespace halfstep::train {

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

// A warning (level -1) means that the data are broken and the decoder makes up the rest, apart from bytes too many
// between two markers, which some cameras write and which harm nothing.
void on_message(j_common_ptr jpeg, int level) {
  if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) give_up(jpeg);
}

void print_nothing(j_common_ptr) {}

/// Reads the header. False, with the message, where that cannot be done.
bool begin(Decompressor& d, const std::uint8_t* file, std::size_t size, J_COLOR_SPACE colours) {
  d.jpeg.err = jpeg_std_error(&d.errors);
  d.errors.error_exit = give_up;
  d.errors.emit_message = on_message;
  d.errors.output_message = print_nothing;
  d.jpeg.client_data = &d;
  if (setjmp(d.on_error) != 0) return false;
  jpeg_create_decompress(&d.jpeg);
  jpeg_mem_src(&d.jpeg, file, size);
  jpeg_read_header(&d.jpeg, TRUE);
  d.jpeg.out_color_space = colours;
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

/// A decompressor, and its end however the function ends that has it.
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
  if (!begin(d, file.data(), file.size(), channels == 1 ? JCS_GRAYSCALE : JCS_RGB)) fail("jpeg", d.message.data());
  check_extents(d.jpeg.image_height, d.jpeg.image_width);
  DecodedImage image;
  image.height = d.jpeg.image_height;
  image.width = d.jpeg.image_width;
  const std::size_t stride = std::size_t{image.width} * static_cast<std::size_t>(channels);
  image.bytes.resize(image.height * stride);
  if (!decode(d, image.bytes.data(), stride)) fail("jpeg", d.message.data());
  return image;
}

}  // namespace halfstep::train
