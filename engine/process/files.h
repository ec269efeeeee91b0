#pragma once

#include <halfstep/process.h>

#include <filesystem>
#include <string_view>
#include <system_error>

/// What posix.cpp and windows.cpp each define, and what they share.
namespace halfstep::process {

/// The ordinary file that a write to `file` replaces, symbolic links followed. Throws Error if it can be none.
std::filesystem::path destination(const std::filesystem::path& file);

/// The folder that `file` lies in.
std::filesystem::path folder(const std::filesystem::path& file);

/// Throws "[file] cannot `what` `file`: the system's reason".
[[noreturn]] void fail_to(std::string_view what, const std::filesystem::path& file, const std::error_code& error);

/// A new file beside `destination`, gone again unless it came to replace it.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& destination);
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary();

  void write(Bytes bytes);
  /// Makes sure that the bytes are on the disk, then takes the destination's place.
  void replace();

 private:
  std::filesystem::path destination_;
  std::filesystem::path path_;
  std::intptr_t handle_;
  bool exists_ = true;
};

}  // namespace halfstep::process
