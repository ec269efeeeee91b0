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
    append(block, exif.size(), 4);
    for (const char c : {'e', 'X', 'I', 'f'}) block.push_back(static_cast<std::uint8_t>(c));
    block.insert(block.end(), exif.begin(), exif.end());
    append(block, crc32(0, block.data() + 4, static_cast<uInt>(block.size() - 4)), 4);
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
