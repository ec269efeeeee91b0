#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace halfstep::data {

/// A file read from front to back, unpacked on the way if it is gzipped.
class GzipFile {
 public:
  /// Throws Error if there is no such ordinary file or it cannot be opened.
  explicit GzipFile(const std::filesystem::path& path);

  /// Fills `bytes` as far as the file goes and returns how many there were. Throws Error if the file cannot be read or
  /// its packing is broken.
  std::size_t read(std::span<std::uint8_t> bytes);
  /// The next `size` bytes, fewer where the file ends. Memory grows with what is there, not with what is asked for.
  std::vector<std::uint8_t> read_up_to(std::uint64_t size);
  /// Whether everything has been read. Throws Error if the packing breaks off or its checksum does not match.
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
