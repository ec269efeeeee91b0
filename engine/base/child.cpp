#include "base/child.h"

#if defined(_WIN32)

namespace halfstep::process {

// This platform has no fork.
Child::Child() = default;
Child::~Child() = default;
int Child::end() noexcept {
  return 0;
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
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <exception>
#include <utility>

#include "base/descriptor.h"

namespace halfstep::process {
namespace {

using Clock = std::chrono::steady_clock;

bool inside_child = false;

/// Precedes the bytes of a message.
struct Header {
  Child::Work work = nullptr;  ///< of requests: the child has the same functions at the same addresses
  std::uint64_t bytes = 0;
};

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

bool send_message(int socket, Child::Work work, std::string_view text) {
  const Header header{work, text.size()};
  return send_all(socket, &header, sizeof header) && send_all(socket, text.data(), text.size());
}

bool receive_message(int socket, Header& header, std::string& text, Clock::time_point end) {
  if (!receive_all(socket, &header, sizeof header, end)) return false;
  text.resize(header.bytes);
  return receive_all(socket, text.data(), text.size(), end);
}

/// A crash is expected here: no signal handlers of the program, no core file, no output on the terminal.
void fall_silent() {
  for (const int signal : {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, SIG_DFL);
  const rlimit none{0, 0};
  static_cast<void>(setrlimit(RLIMIT_CORE, &none));
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

/// Whether a process ended in a way that its own code causes. Others than a fault's signals come from outside.
bool is_crash(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
  if (!WIFSIGNALED(status)) return false;
  const int ended_by = WTERMSIG(status);
  constexpr std::array faults{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  return std::ranges::find(faults, ended_by) != faults.end();
}

[[noreturn]] void serve(int socket) {
  inside_child = true;
  fall_silent();
  Header header;
  std::string text;
  // The loop ends when the other end is closed.
  while (receive_message(socket, header, text, Clock::now() + std::chrono::hours(24))) {
    try {
      if (!send_message(socket, nullptr, header.work(text))) break;
    } catch (const std::exception&) {
      break;
    }
  }
  _exit(0);
}

}  // namespace

Child::Child() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  for (int& end : ends) {
    end = beyond_standard_streams(end);
    fcntl(end, F_SETFD, FD_CLOEXEC);
#if defined(SO_NOSIGPIPE)
    const int yes = 1;
    setsockopt(end, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
  }
  process_ = fork();
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
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (process_ <= 0) return 0;
  kill(process_, SIGKILL);  // changes nothing for one that has crashed
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

bool Child::inside() {
  return inside_child;
}

bool Child::alive() {
  const std::lock_guard lock(mutex_);
  return socket_ >= 0;
}

Child::Outcome Child::run(Work work, std::string_view argument, std::chrono::milliseconds limit) {
  const std::lock_guard lock(mutex_);
  if (socket_ < 0) return {};
  Header header;
  std::string answer;
  const bool sent = send_message(socket_, work, argument);
  if (sent && receive_message(socket_, header, answer, Clock::now() + limit))
    return {.answer = std::move(answer), .crashed = false};
  const bool crashed = is_crash(end());
  return {.answer = {}, .crashed = sent && crashed};
}

}  // namespace halfstep::process

#endif
