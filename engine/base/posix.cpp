#if !defined(_WIN32)

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/host_memory.h"
#include "base/library.h"

namespace halfstep {

namespace {

constexpr std::string_view temporary_start = ".halfstep-";
constexpr std::string_view temporary_end = ".tmp";

// Accessed by the signal handler, so all must be lock-free.
std::atomic<bool> watching = false;
std::atomic<int> first_interrupt = 0;
std::atomic<bool> ending = false;  ///< by a signal, which removes the files below
std::array<std::atomic<const char*>, 64> files_being_written{};
constexpr const char* being_made = "";  ///< in the place of a file that is about to be named there
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

std::error_code system_error() {
  return {errno, std::system_category()};
}

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

void remove_files_being_written() {
  ending = true;  // from here on, no file is begun, and no path is freed
  for (const auto& file : files_being_written) {
    // Another thread names it in a moment: with signals blocked, so not the one that this handler runs in.
    for (int i = 0; i < 1000 && file.load() == being_made; ++i) poll(nullptr, 0, 1);
    if (const char* path = file.load()) unlink(path);
  }
}

extern "C" void on_interrupt(int signal) {
  int none = 0;
  if (watching && first_interrupt.compare_exchange_strong(none, signal)) return;
  // A closing terminal often sends SIGHUP twice: from its shell and from the kernel.
  if (watching && signal == SIGHUP) return;
  remove_files_being_written();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, signal);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  _exit(128 + signal);  // the first process of a container is not ended by signals of its own
}

/// To be called where the handler may have removed a file, or may be reading its path: the process must not go on.
void wait_if_ending() {
  while (ending) pause();
}

/// Blocks in this thread the signals that end the process.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : ending_signals) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// A place for a file that a signal removes. Where all are taken, waits for another thread's file to be written.
std::size_t take_place() {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    for (std::size_t place = 0; place < files_being_written.size(); ++place) {
      const char* none = nullptr;
      if (files_being_written[place].compare_exchange_strong(none, being_made)) return place;
    }
  }
}

/// Creates a file that a signal removes, and stores its place. Negative, with errno, on failure.
int create_noted(const char* path, std::size_t& place) {
  const SignalsBlocked blocked;
  place = take_place();
  if (ending) {
    files_being_written[place] = nullptr;
    wait_if_ending();
  }
  const int file = process::beyond_standard_streams(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  files_being_written[place] = file < 0 ? nullptr : path;
  return file;
}

/// The process whose temporary has this name; no value if it is not one of our temporaries.
std::optional<pid_t> writer_of(std::string_view name) {
  if (!name.starts_with(temporary_start) || !name.ends_with(temporary_end)) return {};
  name.remove_prefix(temporary_start.size());
  pid_t writer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), writer);
  if (error != std::errc() || writer <= 0 || end == name.data() + name.size() || *end != '-') return {};
  return writer;
}

/// Writers hold a lock as long as they live. The process id in the name is not enough: the writer may run in another
/// container or on another machine.
void remove_if_stale(int folder, const char* name) {
  const std::optional<pid_t> writer = writer_of(name);
  if (!writer || kill(*writer, 0) == 0 || errno != ESRCH) return;
  const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  struct stat status = {};
  const bool ours = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
  if (ours && flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, name, 0);
  close(file);
}

int descriptor(Stream stream) {
  return stream == Stream::output ? STDOUT_FILENO : STDERR_FILENO;
}

int flush(int file) {
#if defined(__APPLE__)
  // fsync leaves the data in the drive's own cache on this platform.
  if (fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
  return fsync(file);
}

// A rename is on disk only once its folder is synced. Some file systems cannot sync a folder and need not.
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

bool read_only(const std::filesystem::path& file) {
  struct stat status = {};
  if (stat(file.c_str(), &status) != 0) return false;
  // The superuser may write to any file; this protects files that were made read-only on purpose.
  return (status.st_mode & 0222) == 0 || access(file.c_str(), W_OK) != 0;
}

void remove_stale_temporaries(const std::filesystem::path& folder) noexcept {
  DIR* const entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) remove_if_stale(dirfd(entries), entry->d_name);
  closedir(entries);
}

FolderLock::FolderLock(const std::filesystem::path& folder) noexcept
    : handle_(beyond_standard_streams(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))) {
  constexpr std::chrono::milliseconds pause(5);
  for (int i = 0; i < 400; ++i) {
    if (flock(static_cast<int>(handle_), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    std::this_thread::sleep_for(pause);
  }
}

FolderLock::~FolderLock() {
  if (handle_ < 0) return;
  flock(static_cast<int>(handle_), LOCK_UN);  // a process forked meanwhile has the descriptor too
  close(static_cast<int>(handle_));
}

Temporary::Temporary(const std::filesystem::path& destination) : destination_(destination), handle_(-1) {
  static std::atomic<unsigned> made = 0;
  do {
    path_ = folder(destination) / (std::string(temporary_start) + std::to_string(getpid()) + "-" +
                                   std::to_string(made++) + std::string(temporary_end));
    handle_ = create_noted(path_.c_str(), place_);
  } while (handle_ < 0 && errno == EEXIST);
  if (handle_ < 0) fail_to("write", destination, system_error());
  static_cast<void>(flock(static_cast<int>(handle_), LOCK_EX | LOCK_NB));
  struct stat old = {};
  // Keeps the permissions of the file that is replaced.
  if (stat(destination.c_str(), &old) == 0) static_cast<void>(fchmod(static_cast<int>(handle_), old.st_mode & 0777));
}

Temporary::~Temporary() {
  if (handle_ >= 0) close(static_cast<int>(handle_));
  if (exists_) unlink(path_.c_str());
  files_being_written[place_] = nullptr;
  wait_if_ending();
}

void Temporary::write(Bytes bytes) {
  // macOS refuses to write more than 2^31 - 1 bytes in one call.
  constexpr std::size_t most = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(static_cast<int>(handle_), bytes.data(), std::min(bytes.size(), most));
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
  if (rename(path_.c_str(), destination_.c_str()) != 0) {
    const std::error_code error = system_error();
    wait_if_ending();
    fail_to("replace", destination_, error);
  }
  exists_ = false;
  sync_folder(folder(destination_));
}

MappedFile map_file(const std::filesystem::path& file) {
  const int opened = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) fail_to("read", file, system_error());
  struct stat status = {};
  const bool regular = fstat(opened, &status) == 0 && S_ISREG(status.st_mode);
  const auto size = regular ? static_cast<std::size_t>(status.st_size) : 0;
  void* const memory = size > 0 ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened, 0) : nullptr;
  const std::error_code error = system_error();
  close(opened);
  if (!regular) fail_to("read", file, std::make_error_code(std::errc::invalid_argument));
  if (memory == MAP_FAILED) fail_to("read", file, error);
  if (memory == nullptr) return {};
  return {{static_cast<const std::byte*>(memory), size},
          std::shared_ptr<const void>(memory, [size](void* mapped) { munmap(mapped, size); })};
}

std::uint64_t host_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
}

Function find_function(std::initializer_list<const char*> libraries, const char* symbol) {
  for (const char* name : libraries) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return reinterpret_cast<Function>(dlsym(library, symbol));
  }
  return nullptr;
}

bool has_loaded(std::initializer_list<const char*> libraries) {
  for (const char* name : libraries) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    dlclose(library);
    return true;
  }
  return false;
}

}  // namespace process

namespace {

void handle_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : ending_signals) {
    struct sigaction before = {};
    // A process started by nohup must outlive its terminal. A shell starts all background jobs with SIGINT ignored.
    const bool ignored = sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (signal != SIGHUP || !ignored) sigaction(signal, &action, nullptr);
  }
  // A write beyond the user's file size limit then fails with an error, like one on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace

void clean_up_on_interrupt() {
  watching = false;
  handle_interrupts();
}

void watch_interrupts() {
  first_interrupt = 0;
  watching = true;
  handle_interrupts();
  // Ctrl-C also ends the other programs of a pipeline. Printing to a closed pipe must not end this process before it
  // saves.
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() {
  return first_interrupt != 0;
}

int interrupt_signal() {
  return first_interrupt;
}

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest number that is free, which is this one.
    if (fcntl(stream, F_GETFD) < 0) static_cast<void>(open("/dev/null", O_RDWR));
  }
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
