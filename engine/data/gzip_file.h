#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace halfstep::data {

/// Reads a file sequentially, and unpacks it if it is gzipped.
class GzipFile {
 public:
  /// Throws Error if the file does not exist, is not a regular file, or cannot be opened.
  explicit GzipFile(const std::filesystem::path& path);

  /// Reads up to bytes.size() bytes and returns the number read. Throws Error if the file cannot be read or its
  /// compressed data is damaged.
  std::size_t read(std::span<std::uint8_t> bytes);
  /// The next `size` bytes, or fewer at the end of the file. Memory grows with the data that is there, not with `size`.
  std::vector<std::uint8_t> read_up_to(std::uint64_t size);
  /// Whether everything has been read. Throws Error if the compressed data is truncated or its checksum does not match.
  bool at_end();

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Close {
    void operator()(void* file) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<void, Close> file_;
};

}  // namespace halfstep::data
