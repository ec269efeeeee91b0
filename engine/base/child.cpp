#include "base/child.h"

#if defined(_WIN32)

namespace halfstep::process {

// This platform has no fork.
Child::Child() = default;
Child::~Child() = default;
int Child::end() noexcept {
  return 0;
}
bool Child::is_parent() const {
  return true;
}
bool Child::inside() {
  return false;
}
Child::Outcome Child::run(Work, std::string_view, std::chrono::milliseconds) {
  return {};
}
bool Child::alive() {
  return false;
}

}  // namespace halfstep::process

#else

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace halfstep::process {
namespace {

using Clock = std::chrono::steady_clock;

bool inside_child = false;

/// Precedes the bytes of a message.
struct Header {
  Child::Work work = nullptr;  ///< of requests: the child has the same functions at the same addresses
  std::uint64_t bytes = 0;
  std::chrono::milliseconds limit{};  ///< of requests: for the work
  bool crashed = false;               ///< of answers: the work's process ends now
};

/// What a process gets whose own code is at fault. Others come from outside.
constexpr std::array faults{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};

bool send_all(int socket, const void* data, std::size_t size) {
#if defined(MSG_NOSIGNAL)
  constexpr int flags = MSG_NOSIGNAL;
#else
  constexpr int flags = 0;  // SO_NOSIGPIPE is set instead
#endif
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, at, size, flags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// Waits no longer than until `end`.
bool receive_all(int socket, void* data, std::size_t size, Clock::time_point end) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready{socket, POLLIN, 0};
    const int found = left > 0 ? poll(&ready, 1, static_cast<int>(left)) : 0;
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return false;
    const ssize_t got = recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_message(int socket, Header header, std::string_view text) {
  header.bytes = text.size();
  return send_all(socket, &header, sizeof header) && send_all(socket, text.data(), text.size());
}

bool receive_message(int socket, Header& header, std::string& text, Clock::time_point end) {
  if (!receive_all(socket, &header, sizeof header, end)) return false;
  text.resize(header.bytes);
  return receive_all(socket, text.data(), text.size(), end);
}

/// Closes what the program has open, but for its streams: locks, ports and the ends of pipes are the program's alone.
void close_all_but(int socket) {
  std::vector<int> others;
  std::error_code error;
  for (const char* folder : {"/dev/fd", "/proc/self/fd"}) {
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const int descriptor = std::atoi(entry->path().filename().c_str());
      if (descriptor > STDERR_FILENO && descriptor != socket) others.push_back(descriptor);
    }
  }
  for (const int descriptor : others) close(descriptor);
}

int told_socket = -1;

/// Tells the parent of a crash, for which it cannot wait where the application ignores SIGCHLD, or waits for any
/// process that ends. Then the signal ends this process.
extern "C" void tell_of_crash(int signal) {
  const Header header{.crashed = true};
  static_cast<void>(send(told_socket, &header, sizeof header, MSG_DONTWAIT));
  std::raise(signal);
}

/// A crash is expected here: no signal handlers of the program, no core file, no output on the terminal.
void fall_silent() {
  for (const int signal : {SIGINT, SIGTERM, SIGALRM}) std::signal(signal, SIG_DFL);
  struct sigaction once {};
  once.sa_handler = tell_of_crash;
  once.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : faults) sigaction(signal, &once, nullptr);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  const rlimit none{0, 0};
  static_cast<void>(setrlimit(RLIMIT_CORE, &none));
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
  if (nowhere > STDERR_FILENO) close(nowhere);
}

/// Whether a process ended in a way that its own code causes.
bool is_crash(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
  if (!WIFSIGNALED(status)) return false;
  return std::ranges::find(faults, WTERMSIG(status)) != faults.end();
}

/// Has this process end after so long; 0: no more. Its parent cannot see to that: where the application ignores
/// SIGCHLD, or waits for any process that ends, a child's number may already be another process's.
void end_after(std::chrono::milliseconds limit) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(limit.count() / 1000);
  timer.it_value.tv_usec = static_cast<suseconds_t>(limit.count() % 1000 * 1000);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

[[noreturn]] void serve(int socket) {
  inside_child = true;
  told_socket = socket;
  close_all_but(socket);
  fall_silent();
  Header header;
  std::string text;
  // The loop ends when the other end is closed.
  while (receive_message(socket, header, text, Clock::now() + std::chrono::hours(24))) {
    end_after(header.limit);
    try {
      text = header.work(text);
    } catch (const std::exception&) {
      break;
    }
    end_after({});
    if (!send_message(socket, {}, text)) break;
  }
  _exit(0);
}

}  // namespace

Child::Child() : parent_(getpid()) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  for (int& end : ends) {
    end = beyond_standard_streams(end);
    if (end >= 0) fcntl(end, F_SETFD, FD_CLOEXEC);
#if defined(SO_NOSIGPIPE)
    const int yes = 1;
    setsockopt(end, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
  }
  if (ends[0] >= 0 && ends[1] >= 0) process_ = fork();
  if (process_ == 0) {
    close(ends[0]);
    serve(ends[1]);
  }
  close(ends[1]);
  socket_ = ends[0];
  if (process_ < 0) end();
}

Child::~Child() {
  end();
}

int Child::end() noexcept {
  constexpr std::chrono::seconds limit(10);
  const int socket = std::exchange(socket_, -1);
  const int process = std::exchange(process_, -1);
  if (socket >= 0 && is_parent()) shutdown(socket, SHUT_RDWR);  // processes forked since have it open, too
  if (socket >= 0) close(socket);
  if (process <= 0 || !is_parent()) return 0;
  // The child ends by itself, unless a driver's part of the kernel does not let it.
  int status = 0;
  const Clock::time_point last = Clock::now() + limit;
  while (waitpid(process, &status, WNOHANG) == 0 && Clock::now() < last)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return status;
}

/// False in processes that were forked from the child's parent: an answer there could be that of another's request.
bool Child::is_parent() const {
  return parent_ == getpid();
}

bool Child::inside() {
  return inside_child;
}

bool Child::alive() {
  if (!is_parent()) return false;  // and mutex_ may be locked for ever
  const std::lock_guard lock(mutex_);
  return socket_ >= 0;
}

Child::Outcome Child::run(Work work, std::string_view argument, std::chrono::milliseconds limit) {
  if (!is_parent()) return {};
  const std::lock_guard lock(mutex_);
  if (socket_ < 0) return {};
  Header header;
  std::string answer;
  const bool sent = send_message(socket_, {.work = work, .limit = limit}, argument);
  if (sent && receive_message(socket_, header, answer, Clock::now() + limit) && !header.crashed)
    return {.answer = std::move(answer), .crashed = false};
  const bool crashed = is_crash(end()) || header.crashed;
  return {.answer = {}, .crashed = sent && crashed};
}

}  // namespace halfstep::process

#endif
