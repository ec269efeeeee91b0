#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

// After <cstdio>, which it needs.
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

/// PNG and JPEG files for tests, of bytes {height, width, channels} with 1, 3 or 4 channels: four channels are RGBA in
/// PNG and CMYK in JPEG.
namespace image_files {

using FileBytes = std::vector<std::uint8_t>;

inline FileBytes png(std::uint32_t height, std::uint32_t width, std::uint32_t channels, const FileBytes& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = height;
  image.width = width;
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  FileBytes file(size);
  png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr);
  file.resize(size);
  return file;
}

/// How a JPEG file stores CMYK.
struct Inks {
  bool ycck = false;          ///< converted to luminance, chrominance and black
  bool adobe_marker = false;  ///< which says that 255 is no ink
};

inline FileBytes jpeg(std::uint32_t height, std::uint32_t width, std::uint32_t channels, const FileBytes& pixels,
                      Inks inks = {}) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_height = height;
  jpeg.image_width = width;
  jpeg.input_components = static_cast<int>(channels);
  jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  if (inks.ycck) {
    jpeg_set_colorspace(&jpeg, JCS_YCCK);
    // No chroma subsampling, so that colours do not mix at edges.
    for (int i = 0; i < jpeg.num_components; i++) jpeg.comp_info[i].h_samp_factor = jpeg.comp_info[i].v_samp_factor = 1;
  }
  if (channels == 4) jpeg.write_Adobe_marker = inks.adobe_marker ? TRUE : FALSE;
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  FileBytes rows = pixels;
  while (jpeg.next_scanline < height) {
    JSAMPROW row = rows.data() + std::size_t{jpeg.next_scanline} * width * channels;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  FileBytes file(memory, memory + size);
  std::free(memory);
  return file;
}

inline void append(FileBytes& bytes, std::uint64_t number, int size, bool big_endian = true) {
  for (int i = 0; i < size; i++) {
    bytes.push_back(static_cast<std::uint8_t>(number >> 8 * (big_endian ? size - 1 - i : i)));
  }
}

/// A chunk of a PNG file.
inline FileBytes png_chunk(const std::string& type, const FileBytes& content) {
  FileBytes chunk;
  append(chunk, content.size(), 4);
  chunk.insert(chunk.end(), type.begin(), type.end());
  chunk.insert(chunk.end(), content.begin(), content.end());
  append(chunk, crc32(0, chunk.data() + 4, static_cast<uInt>(chunk.size() - 4)), 4);
  return chunk;
}

/// What the header of a PNG file says of its pixels.
struct PngPixels {
  std::uint32_t height = 1;
  std::uint32_t width = 1;
  std::uint8_t bits = 8;  ///< of a channel
  std::uint8_t colour_type = PNG_COLOR_TYPE_GRAY;
  bool interlaced = false;  ///< in Adam7's seven passes
};

/// A PNG file of rows of bytes, which hold the pixels as PNG does.
inline FileBytes png_of_rows(const PngPixels& pixels, const FileBytes& rows, const FileBytes& chunks = {}) {
  const std::size_t stride = rows.size() / pixels.height;
  FileBytes lines;
  // Bytes of each row from `x` on, `size` in every `step`.
  const auto add_line = [&](std::size_t y, std::size_t x, std::size_t size, std::size_t step) {
    lines.push_back(0);  // no filter
    for (; x < stride; x += step) {
      for (std::size_t i = 0; i < size; i++) lines.push_back(rows[y * stride + x + i]);
    }
  };
  if (!pixels.interlaced) {
    for (std::size_t y = 0; y < pixels.height; y++) add_line(y, 0, stride, stride);
  } else {
    const std::size_t size = stride / pixels.width;
    struct Pass {
      std::size_t y, x, down, along;
    };
    for (const auto& [first, x, down, along] : {Pass{0, 0, 8, 8}, Pass{0, 4, 8, 8}, Pass{4, 0, 8, 4}, Pass{0, 2, 4, 4},
                                                Pass{2, 0, 4, 2}, Pass{0, 1, 2, 2}, Pass{1, 0, 2, 1}}) {
      for (std::size_t y = first; y < pixels.height && x < pixels.width; y += down) {
        add_line(y, x * size, size, along * size);
      }
    }
  }
  FileBytes header;
  append(header, pixels.width, 4);
  append(header, pixels.height, 4);
  header.insert(header.end(), {pixels.bits, pixels.colour_type, 0, 0, std::uint8_t{pixels.interlaced}});
  uLongf size = compressBound(static_cast<uLong>(lines.size()));
  FileBytes data(size);
  compress(data.data(), &size, lines.data(), static_cast<uLong>(lines.size()));
  data.resize(size);
  FileBytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  for (const FileBytes& part : {png_chunk("IHDR", header), chunks, png_chunk("IDAT", data), png_chunk("IEND", {})}) {
    file.insert(file.end(), part.begin(), part.end());
  }
  return file;
}

/// EXIF data with one other tag and this orientation.
inline FileBytes exif(std::uint32_t orientation, bool big_endian) {
  FileBytes bytes = big_endian ? FileBytes{'M', 'M'} : FileBytes{'I', 'I'};
  const auto put = [&](std::uint64_t number, int size) { append(bytes, number, size, big_endian); };
  put(42, 2);
  put(8, 4);  // offset of the directory
  put(2, 2);  // number of its tags
  for (const auto& [tag, type, value] : {std::array{0x0100U, 4U, 77U}, std::array{0x0112U, 3U, orientation}}) {
    put(tag, 2);
    put(type, 2);
    put(1, 4);
    put(value, type == 4 ? 4 : 2);
    if (type != 4) put(0, 2);
  }
  put(0, 4);  // no further directory
  return bytes;
}

/// The PNG or JPEG file with EXIF data inserted after its header.
inline FileBytes with_exif(FileBytes file, const FileBytes& exif) {
  const bool png = file[0] == 0x89;
  FileBytes block;
  if (png) {
    block = png_chunk("eXIf", exif);
  } else {
    append(block, 0xFFE1, 2);
    append(block, exif.size() + 8, 2);
    for (const char c : {'E', 'x', 'i', 'f', '\0', '\0'}) block.push_back(static_cast<std::uint8_t>(c));
    block.insert(block.end(), exif.begin(), exif.end());
  }
  file.insert(file.begin() + (png ? 33 : 2), block.begin(), block.end());
  return file;
}

inline void write(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary);
  for (const std::uint8_t byte : bytes) file.put(static_cast<char>(byte));
}

}  // namespace image_files
