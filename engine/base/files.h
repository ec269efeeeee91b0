#pragma once

#include <halfstep/process.h>

#include <filesystem>
#include <string_view>
#include <system_error>

/// What posix.cpp and windows.cpp each define, and what they share.
namespace halfstep::process {

/// The ordinary file that a write to `file` creates or replaces, symbolic links followed. Throws Error if it can be
/// none, or is read-only.
std::filesystem::path destination(const std::filesystem::path& file);

/// Whether this user may not write to an existing file, or no user may.
bool read_only(const std::filesystem::path& file);

/// Removes from `folder` the temporaries of processes of this user that have ended without removing them.
void remove_stale_temporaries(const std::filesystem::path& folder) noexcept;

/// The folder that `file` lies in.
std::filesystem::path folder(const std::filesystem::path& file);

/// Throws "[file] cannot `what` `file`: the system's reason", by ErrorCode::system where that is no fault of the
/// name.
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
  std::size_t place_;  ///< among the files that a signal's handler removes
};

}  // namespace halfstep::process
