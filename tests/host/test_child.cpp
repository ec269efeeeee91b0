// Work that may crash runs in a forked process.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
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
std::string process_number(std::string_view) {
  return std::to_string(getpid());
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

TEST_CASE("a crash is one where the application ignores what becomes of its processes") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  for (const Child::Work work : {crash, read_nowhere, fail, hang}) {
    Child child;
    const Child::Outcome outcome = child.run(work, "", work == hang ? 50ms : 10s);
    CHECK(outcome.answer == std::nullopt);
    CHECK(outcome.crashed == (work == crash || work == read_nowhere));
    CHECK_FALSE(child.alive());
  }
  Child child;
  CHECK_FALSE(child.run(end_from_outside, std::to_string(SIGKILL), 10s).crashed);
  std::signal(SIGCHLD, before);
}

TEST_CASE("a child that is ended from outside has not crashed") {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    Child child;
    const Child::Outcome outcome = child.run(end_from_outside, std::to_string(signal), 10s);
    CHECK(outcome.answer == std::nullopt);
    CHECK_FALSE(outcome.crashed);
  }
}

TEST_CASE("a child works for a process without standard streams, whatever that opens in their place") {
  for (const int closed : {0b001, 0b010, 0b100, 0b011, 0b110, 0b111}) {
    CAPTURE(closed);
    int kept[3];
    for (int stream = 0; stream < 3; ++stream) {
      kept[stream] = fcntl(stream, F_DUPFD_CLOEXEC, 3);
      if ((closed >> stream & 1) != 0) close(stream);
    }
    Child child;
    for (int stream = 0; stream < 3; ++stream) {
      dup2(kept[stream], stream);
      close(kept[stream]);
    }
    CHECK(child.run(echo, "hello", 10s).answer == "hello from inside, 1");
  }
}

TEST_CASE("a child keeps no file of its process open") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  Child child;
  REQUIRE(child.run(echo, "hello", 10s).answer.has_value());  // it has begun
  close(ends[1]);
  pollfd end_of_file{ends[0], POLLIN, 0};
  CHECK(poll(&end_of_file, 1, 0) == 1);
  CHECK((end_of_file.revents & POLLHUP) != 0);
  close(ends[0]);
}

TEST_CASE("a child works for the process that made it, not for others that are forked from that") {
  auto child = std::make_unique<Child>();
  REQUIRE(child->alive());
  const pid_t worker = fork();
  if (worker == 0) {
    const bool answered = child->alive() || child->run(echo, "of a worker", 10s).answer.has_value();
    child.reset();
    _exit(answered ? 1 : 0);
  }
  int status = -1;
  REQUIRE(waitpid(worker, &status, 0) == worker);
  CHECK(status == 0);
  CHECK(child->run(echo, "hello", 10s).answer == "hello from inside, 1");
}

TEST_CASE("a child ends with its object, while processes that are forked from that go on") {
  auto child = std::make_unique<Child>();
  const int number = std::stoi(child->run(process_number, "", 10s).answer.value_or("0"));
  REQUIRE(number > 0);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t worker = fork();
  if (worker == 0) {
    char byte;
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  child.reset();
  CHECK(kill(number, 0) != 0);
  close(ends[0]);
  close(ends[1]);
  REQUIRE(waitpid(worker, nullptr, 0) == worker);
}

TEST_CASE("a child that takes too long ends by itself") {
  Child child;
  const int number = std::stoi(child.run(process_number, "", 10s).answer.value_or("0"));
  REQUIRE(number > 0);
  CHECK_FALSE(child.run(hang, "", 50ms).answer.has_value());
  CHECK(kill(number, 0) != 0);
}

TEST_CASE("a child that another has waited for ends no process that has its number since") {
  Child child;
  const int number = std::stoi(child.run(process_number, "", 10s).answer.value_or("0"));
  REQUIRE(number > 0);
  REQUIRE(kill(number, SIGTERM) == 0);
  REQUIRE(waitpid(number, nullptr, 0) == number);
  int begun[2], ends[2];
  REQUIRE(pipe(begun) == 0);
  REQUIRE(pipe(ends) == 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(ends[1]);
    // Only root may choose the number of the next process, and one of another program may take it first.
    std::ofstream("/proc/sys/kernel/ns_last_pid") << number - 1;
    const pid_t stranger = fork();
    char byte = 0;
    if (stranger == 0) _exit(write(begun[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 0 ? 0 : 1);
    int status = -1;
    _exit(waitpid(stranger, &status, 0) == stranger && status == 0 ? 0 : 1);
  }
  char byte = 0;
  REQUIRE(read(begun[0], &byte, 1) == 1);
  CHECK_FALSE(child.run(echo, "hello", 10s).answer.has_value());
  for (const int end : {begun[0], begun[1], ends[0], ends[1]}) close(end);
  int status = -1;
  REQUIRE(waitpid(parent, &status, 0) == parent);
  CHECK(status == 0);
}
