#pragma once

#include <halfstep/process.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

/// Functions that posix.cpp and windows.cpp each define, and helpers that they share.
namespace halfstep::process {

/// The regular file that a write to `file` creates or replaces, with symbolic links followed. Throws Error if it cannot
/// be a regular file, or is read-only.
std::filesystem::path destination(const std::filesystem::path& file);

/// Whether an existing file is read-only for this user or for everyone.
bool read_only(const std::filesystem::path& file);

/// Removes from `folder` the temporaries of this user's processes that ended without removing them.
void remove_stale_temporaries(const std::filesystem::path& folder) noexcept;

/// The parent folder of `file`.
std::filesystem::path folder(const std::filesystem::path& file);

/// The folder, created if needed; empty if that is not possible.
std::filesystem::path made_folder(const std::filesystem::path& folder);

/// Throws "[file] cannot `what` `file`: the system's reason", with ErrorCode::system if the cause is not the file's
/// name.
[[noreturn]] void fail_to(std::string_view what, const std::filesystem::path& file, const std::error_code& error);

/// A file's bytes, mapped into memory, for reading. The file must not be truncated while `owner` exists: reading past
/// its end then ends the process.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Maps a whole file; an empty one has no bytes. Throws Error that names it unless it is a regular file that can be
/// read.
MappedFile map_file(const std::filesystem::path& file);

/// While it exists, no other process or thread has one of the same folder. To be held briefly: after two seconds in
/// which another did not let go, or where the file system has no locks, it goes on without.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  std::intptr_t handle_;
};

/// A new file beside `destination`; removed again unless it replaced it.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& destination);
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary();

  void write(Bytes bytes);
  /// Syncs the file to disk, then replaces the destination.
  void replace();

 private:
  std::filesystem::path destination_;
  std::filesystem::path path_;
  std::intptr_t handle_;
  bool exists_ = true;
  std::size_t place_ = 0;  ///< index in the list of files that the signal handler removes
};

}  // namespace halfstep::process
