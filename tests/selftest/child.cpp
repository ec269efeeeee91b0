#include "selftest/child.h"

#include <halfstep/error.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace halfstep::selftest {
namespace {

[[noreturn]] void become(const std::vector<std::string>& arguments, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive a self-test that is ended
  std::vector<std::string> all{"/proc/self/exe"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& one : all) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  execv("/proc/self/exe", pointers.data());
  _exit(127);
}

/// Reads until the other side closes. Returns false if that takes longer than the limit.
bool read_all(int input, std::chrono::seconds limit, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::array<char, 4096> part{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{input, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t size = read(input, part.data(), part.size());
    if (size <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(size));
    constexpr std::size_t kept = 4000;
    if (text.size() > 2 * kept) text.erase(0, text.size() - kept);
  }
}

}  // namespace

Ended run_self(const std::vector<std::string>& arguments, std::chrono::seconds limit) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("[selftest] expected a pipe, got an error of the system");
  const pid_t process = fork();
  if (process == 0) become(arguments, ends[1]);
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    throw Error("[selftest] expected to start a process, got an error of the system");
  }
  Ended ended;
  ended.too_long = !read_all(ends[0], limit, ended.output);
  close(ends[0]);
  if (ended.too_long) kill(-process, SIGKILL);
  int status = 0;
  waitpid(process, &status, 0);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

}  // namespace halfstep::selftest
