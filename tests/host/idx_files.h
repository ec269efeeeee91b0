#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

/// IDX files for tests, built byte by byte.
namespace idx_files {

using ByteString = std::string;

/// The header for unsigned bytes of the given extents, then `body`.
inline ByteString array(const std::vector<std::uint32_t>& extents, const ByteString& body) {
  ByteString file = {0, 0, 8, static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (const int shift : {24, 16, 8, 0}) file.push_back(static_cast<char>(extent >> shift));
  }
  return file + body;
}

inline void write(const std::filesystem::path& path, const ByteString& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline void write_gzipped(const std::filesystem::path& path, const ByteString& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

/// `count` bytes that count up from `first`.
inline ByteString ramp(std::size_t count, int first = 0) {
  ByteString bytes;
  for (std::size_t i = 0; i < count; i++) bytes.push_back(static_cast<char>(static_cast<std::size_t>(first) + i));
  return bytes;
}

}  // namespace idx_files
