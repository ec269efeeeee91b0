#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

/// libFuzzer's input as a file, for a reader that takes a path; the destructor removes it.
class InputFile {
 public:
  InputFile(const std::uint8_t* data, std::size_t size)
      : path_(std::filesystem::temp_directory_path() / ("halfstep-fuzz-" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));  // NOLINT: bytes of a file
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() { std::filesystem::remove(path_); }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
