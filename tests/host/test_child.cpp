// Work that may crash runs in a forked process.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/child.h"

using halfstep::process::Child;
using namespace std::chrono_literals;

namespace {

int calls = 0;

std::string echo(std::string_view text) {
  ++calls;
  return std::string(text) + (Child::inside() ? " from inside, " : " from outside, ") + std::to_string(calls);
}
std::string crash(std::string_view) {
  std::abort();
}
std::string read_nowhere(std::string_view) {
  const volatile int* nowhere = nullptr;
  return std::to_string(*nowhere);  // NOLINT: crashes, as a driver might
}
std::string exit_with_failure(std::string_view) {
  std::_Exit(1);
}
std::string end_from_outside(std::string_view signal) {
  std::raise(std::stoi(std::string(signal)));  // as Ctrl-C does to all processes of a terminal
  return "alive";
}
std::string fail(std::string_view) {
  throw std::runtime_error("no");
}
std::string hang(std::string_view) {
  std::this_thread::sleep_for(1h);
  return "awake";
}

}  // namespace

TEST_CASE("a child does work as often as it is asked, on memory of its own") {
  Child child;
  REQUIRE(child.alive());
  CHECK(child.run(echo, "hello", 10s).answer == "hello from inside, 1");
  CHECK(child.run(echo, "", 10s).answer == " from inside, 2");
  const std::string large(1 << 20, 'x');
  CHECK(child.run(echo, large, 10s).answer == large + " from inside, 3");
  CHECK(calls == 0);
  CHECK_FALSE(Child::inside());
}

TEST_CASE("what a program prints does not reach its child, where its standard streams are closed") {
  const pid_t program = fork();
  REQUIRE(program >= 0);
  if (program == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    Child child;
    if (write(STDIN_FILENO, "x", 1) >= 0 || write(STDOUT_FILENO, "x", 1) >= 0 || write(STDERR_FILENO, "x", 1) >= 0) {
      _exit(1);
    }
    _exit(child.run(echo, "two", 10s).answer == "two from inside, 1" ? 0 : 2);
  }
  int status = 0;
  waitpid(program, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("what crashes, throws or hangs a child costs its answer only") {
  for (const Child::Work work : {crash, read_nowhere, exit_with_failure, fail, hang}) {
    Child child;
    const Child::Outcome outcome = child.run(work, "", work == hang ? 50ms : 10s);
    CHECK(outcome.answer == std::nullopt);
    CHECK(outcome.crashed == (work != fail && work != hang));
    CHECK_FALSE(child.alive());
    const Child::Outcome later = child.run(echo, "hello", 10s);
    CHECK(later.answer == std::nullopt);
    CHECK_FALSE(later.crashed);  // it was not run
  }
}

TEST_CASE("a child that is ended from outside has not crashed") {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    Child child;
    const Child::Outcome outcome = child.run(end_from_outside, std::to_string(signal), 10s);
    CHECK(outcome.answer == std::nullopt);
    CHECK_FALSE(outcome.crashed);
  }
}
