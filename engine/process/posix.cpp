#if !defined(_WIN32)

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>

#include "process/files.h"
#include "process/library.h"

namespace halfstep {

namespace {

// Read and written by the signal handler, so both must be lock-free.
std::atomic<bool> interrupt_seen = false;
std::atomic<const char*> file_being_written = nullptr;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);

std::error_code system_error() {
  return {errno, std::system_category()};
}

extern "C" void on_interrupt(int signal) {
  if (!interrupt_seen.exchange(true)) return;
  if (const char* path = file_being_written.load()) unlink(path);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

int descriptor(Stream stream) {
  return stream == Stream::output ? STDOUT_FILENO : STDERR_FILENO;
}

int flush(int file) {
#if defined(__APPLE__)
  // fsync leaves the bytes in the drive's own cache there.
  if (fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
  return fsync(file);
}

// A rename is on the disk once its folder is. Some file systems cannot sync a folder and need not.
void sync_folder(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  const bool failed = fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP;
  const std::error_code error = system_error();
  close(file);
  if (failed) process::fail_to("sync", folder, error);
}

}  // namespace

namespace process {

Temporary::Temporary(const std::filesystem::path& destination) : destination_(destination), handle_(-1) {
  static std::atomic<unsigned> made = 0;
  do {
    path_ = folder(destination) / (".halfstep-" + std::to_string(getpid()) + "-" + std::to_string(made++) + ".tmp");
    handle_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (handle_ < 0 && errno == EEXIST);
  if (handle_ < 0) fail_to("write", destination, system_error());
  file_being_written = path_.c_str();
  struct stat old = {};
  // The file keeps the permissions it had.
  if (stat(destination.c_str(), &old) == 0) static_cast<void>(fchmod(static_cast<int>(handle_), old.st_mode & 0777));
}

Temporary::~Temporary() {
  if (handle_ >= 0) close(static_cast<int>(handle_));
  if (exists_) unlink(path_.c_str());
  file_being_written = nullptr;
}

void Temporary::write(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(static_cast<int>(handle_), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      fail_to("write", destination_, system_error());
    }
  }
}

void Temporary::replace() {
  if (flush(static_cast<int>(handle_)) != 0) fail_to("write", destination_, system_error());
  const int closed = close(static_cast<int>(handle_));
  handle_ = -1;
  if (closed != 0) fail_to("write", destination_, system_error());
  if (rename(path_.c_str(), destination_.c_str()) != 0) fail_to("replace", destination_, system_error());
  exists_ = false;
  sync_folder(folder(destination_));
}

Function find_function(std::initializer_list<const char*> libraries, const char* symbol) {
  for (const char* name : libraries) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return reinterpret_cast<Function>(dlsym(library, symbol));
  }
  return nullptr;
}

}  // namespace process

void watch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A file that passes the user's size limit then fails to be written, like one that no longer fits the disk.
  std::signal(SIGXFSZ, SIG_IGN);
}

bool interrupted() {
  return interrupt_seen;
}

bool is_terminal(Stream stream) {
  return isatty(descriptor(stream)) == 1;
}

int terminal_width(Stream stream) {
  winsize size = {};
  if (ioctl(descriptor(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace halfstep

#endif
