#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace halfstep::process {

/// The open descriptor under another number than those of the standard streams. Where these are closed, a file gets
/// theirs, and what the program prints would be written into it. Negative, with errno, on failure; `opened` is closed.
inline int beyond_standard_streams(int opened) {
  if (opened < 0 || opened > STDERR_FILENO) return opened;
  const int moved = fcntl(opened, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(opened);
  errno = error;
  return moved;
}

}  // namespace halfstep::process
