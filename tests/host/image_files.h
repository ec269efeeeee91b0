#pragma once

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

/// PNG and JPEG files for tests, of bytes {height, width, channels} with 1, 3 or (PNG) 4 channels.
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

inline FileBytes jpeg(std::uint32_t height, std::uint32_t width, std::uint32_t channels, const FileBytes& pixels) {
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
  jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
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

inline void write(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary);
  for (const std::uint8_t byte : bytes) file.put(static_cast<char>(byte));
}

}  // namespace image_files
