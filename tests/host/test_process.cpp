#include <halfstep/error.h>
#include <halfstep/process.h>

#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "base/files.h"
#include "host/temporary_folder.h"

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#endif

using namespace halfstep;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, std::string_view first, std::string_view second = {}) {
  const Bytes parts[] = {std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
  write_atomically(file, parts);
}

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("A file is written whole and replaced whole") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  write(file, "one", "two");
  CHECK(contents(file) == "onetwo");
  write(file, "three");
  CHECK(contents(file) == "three");
  write(file, "");
  CHECK(contents(file).empty());
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("What cannot be a file is named before anything is written") {
  const TemporaryFolder folder;
  const fs::path missing = folder.path() / "nowhere" / "weights";
  CHECK(has(message_of([&] { write(missing, "x"); }), missing.string()));
  CHECK(has(message_of([&] { check_writable(missing); }), "No such file or directory"));
  CHECK(has(message_of([&] { write(folder.path(), "x"); }), "got the folder"));
  CHECK(has(message_of([&] { write("", "x"); }), "expected the name of a file"));
  CHECK(has(message_of([&] { write(folder.path() / "a" / "", "x"); }), "expected the name of a file"));
  const fs::path long_name = folder.path() / std::string(300, 'a');
  CHECK(has(message_of([&] { check_writable(long_name); }), "File name too long"));
  CHECK(entries(folder.path()) == 0);
  write(folder.path() / "plain", "x");
  for (const char* name : {"none/..", "none/."}) {
    CHECK(has(message_of([&] { written_file(folder.path() / name); }), "expected the name of a file"));
  }
  for (const char* name : {"plain/.", "plain/sub", "plain/sub/deeper"}) {
    CHECK(has(message_of([&] { written_file(folder.path() / name); }), "Not a directory"));
  }
}

TEST_CASE("A check for writing leaves nothing behind and what was there untouched") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  check_writable(file);
  CHECK(entries(folder.path()) == 0);
  write(file, "kept");
  check_writable(file);
  CHECK(contents(file) == "kept");
  CHECK(entries(folder.path()) == 1);
}

#if !defined(_WIN32)

TEST_CASE("Links are followed, permissions kept, devices refused") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  const fs::path link = folder.path() / "latest";
  write(file, "old");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("weights", link);
  write(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(contents(file) == "new");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(has(message_of([] { write("/dev/full", "x"); }), "got the device or pipe /dev/full"));
}

TEST_CASE("A link is followed to a file that does not exist yet, and not for ever") {
  const TemporaryFolder folder;
  const fs::path first = folder.path() / "first";
  fs::create_directory(folder.path() / "runs");
  fs::create_symlink("second", first);
  fs::create_symlink("runs/file", folder.path() / "second");
  check_writable(first);
  write(first, "new");
  CHECK(fs::is_symlink(first));
  CHECK(contents(folder.path() / "runs" / "file") == "new");
  fs::create_symlink("loop", folder.path() / "loop");
  CHECK(has(message_of([&] { write(folder.path() / "loop", "x"); }), "loop"));
}

TEST_CASE("However a file is spelt, it is written as one") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "file";
  fs::create_directory(folder.path() / "a");
  fs::create_directory_symlink(folder.path(), folder.path() / "a" / "up");
  fs::create_symlink("file", folder.path() / "link");
  for (int exists = 0; exists < 2; ++exists) {
    for (const char* spelling : {"./file", "a/../file", "a/up/file", "a/up/link"}) {
      CHECK(written_file(folder.path() / spelling) == written_file(file));
    }
    CHECK(written_file(folder.path() / "other") != written_file(file));
    write(file, "x");
  }
  CHECK(written_file(folder.path() / "none" / "file") == written_file(folder.path() / "a/./../none/file"));
  CHECK(written_file("no such folder/file") == fs::current_path() / "no such folder" / "file");
}

TEST_CASE("A read-only file is not replaced, whoever asks") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  write(file, "kept");
  fs::permissions(file, fs::perms::owner_read);
  CHECK(has(message_of([&] { check_writable(file); }), "got the read-only " + file.string()));
  CHECK(has(message_of([&] { write(file, "x"); }), "got the read-only " + file.string()));
  CHECK(contents(file) == "kept");
}

TEST_CASE("Files are written from several threads at a time") {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) write(folder.path() / std::to_string(i % 6), std::string(1000, 'x'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(entries(folder.path()) == 6);
}

namespace {

// Runs `body` in a child, so that limits and signals do not affect this process. Returns its exit code, or -signal.
int in_child(auto&& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGHUP, SIG_DFL);  // which nohup ignores
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("When the space runs out the old file survives and no temporary is left") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  write(file, "old");
  const int code = in_child([&] {
    watch_interrupts();
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string big(100000, 'x');
    const auto code_of = [](auto&& call) {
      try {
        call();
      } catch (const Error& error) {
        return error.code();
      }
      return ErrorCode::bad_argument;
    };
    if (code_of([&] { write(file, big); }) != ErrorCode::system) return 2;
    const std::string message = message_of([&] { write(file, big); });
    return has(message, "cannot write " + file.string()) && has(message, "File too large") ? 0 : 1;
  });
  CHECK(code == 0);
  CHECK(contents(file) == "old");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("What is printed is not written into a file, where standard streams are closed") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  CHECK(in_child([&] {
          for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
          process::Temporary written(file);
          written.write(std::as_bytes(std::span(std::string_view("weights"))));
          for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            if (::write(stream, "printed", 7) >= 0) return 1;
          }
          written.replace();
          return 0;
        }) == 0);
  CHECK(contents(file) == "weights");
}

TEST_CASE("Closed standard streams are opened, open ones are kept") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "file";
  CHECK(in_child([&] {
          close(STDIN_FILENO);
          close(STDERR_FILENO);
          const int output = open(file.c_str(), O_CREAT | O_WRONLY, 0600);  // the place of standard input
          dup2(output, STDOUT_FILENO);
          close(output);
          open_standard_streams();
          if (::write(STDERR_FILENO, "nowhere", 7) != 7 || ::write(STDOUT_FILENO, "kept", 4) != 4) return 1;
          return open(file.c_str(), O_RDONLY) > STDERR_FILENO ? 0 : 2;
        }) == 0);
  CHECK(contents(file) == "kept");
}

TEST_CASE("The first interrupt is noted, the second ends the process") {
  CHECK(in_child([] {
          watch_interrupts();
          if (interrupted()) return 1;
          std::raise(SIGINT);
          return interrupted() ? 0 : 2;
        }) == 0);
  CHECK(in_child([] {
          watch_interrupts();
          std::raise(SIGINT);
          std::raise(SIGTERM);
          return 0;
        }) == -SIGTERM);
}

TEST_CASE("Watching begins anew with each call, and ends where signals are to end the process") {
  CHECK(in_child([] {
          watch_interrupts();
          std::raise(SIGINT);
          watch_interrupts();
          if (interrupted()) return 1;
          std::raise(SIGINT);
          return interrupted() ? 0 : 2;
        }) == 0);
  CHECK(in_child([] {
          watch_interrupts();
          clean_up_on_interrupt();
          std::raise(SIGTERM);
          return 0;
        }) == -SIGTERM);
}

TEST_CASE("A terminal that closes twice is noted once, and nohup lasts") {
  CHECK(in_child([] {
          watch_interrupts();
          std::raise(SIGHUP);
          std::raise(SIGHUP);
          return interrupt_signal() == SIGHUP ? 0 : 1;
        }) == 0);
  CHECK(in_child([] {
          std::signal(SIGHUP, SIG_IGN);
          watch_interrupts();
          std::raise(SIGHUP);
          return interrupted() ? 1 : 0;
        }) == 0);
}

TEST_CASE("Where nothing is watched, a signal ends the process at once and removes what it was writing") {
  const TemporaryFolder folder;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CHECK(in_child([&] {
            clean_up_on_interrupt();
            const process::Temporary one(folder.path() / "one");
            const process::Temporary two(folder.path() / "two");
            if (entries(folder.path()) != 2) return 1;
            std::raise(signal);
            return 0;
          }) == -signal);
    CHECK(entries(folder.path()) == 0);
  }
}

TEST_CASE("However many threads are writing, a signal removes what they write and ends the process by itself") {
  const TemporaryFolder folder;
  const auto path = [&](int i) { return folder.path() / std::to_string(i); };
  const auto ended = [](int writers, int milliseconds, const auto& body) {
    return in_child([&] {
      clean_up_on_interrupt();
      std::vector<std::thread> threads;
      for (int i = 0; i < writers; ++i) threads.emplace_back([&body, i] { body(i); });
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      return std::raise(SIGTERM);
    });
  };
  const auto hold = [&](int i) {
    const process::Temporary held(path(i));
    for (;;) pause();
  };
  for (const int writers : {12, 100}) CHECK(ended(writers, 200, hold) == -SIGTERM);
  CHECK(entries(folder.path()) == 0);
  const auto go_on = [&](int i) {
    for (;;) write(path(i), "x");
  };
  for (int i = 0; i < 20; ++i) CHECK(ended(12, 10 + i, go_on) == -SIGTERM);
  CHECK(entries(folder.path()) == 12);
}

TEST_CASE("What killed processes left is removed by the next write there, and nothing else") {
  const TemporaryFolder folder;
  const auto named = [&](const std::string& name) { return folder.path() / (".halfstep-" + name + ".tmp"); };
  const auto touch = [](const fs::path& file) { std::ofstream(file) << "x"; };
  const pid_t killed = fork();
  REQUIRE(killed >= 0);
  if (killed == 0) {
    const process::Temporary unfinished(folder.path() / "weights");
    std::raise(SIGKILL);
  }
  waitpid(killed, nullptr, 0);
  CHECK(entries(folder.path()) == 1);
  const std::string dead = std::to_string(killed);
  const std::string alive = std::to_string(getpid());
  for (const std::string& name : {alive + "-99", dead, dead + "x-0", std::string("-1-0"), std::string()})
    touch(named(name));
  touch(folder.path() / "kept");
  fs::create_symlink("kept", named(dead + "-7"));
  // As if a process in another container with the same number held it.
  const int other = open(named(dead + "-8").c_str(), O_CREAT | O_RDWR, 0600);
  flock(other, LOCK_EX);
  const std::size_t before = entries(folder.path());
  write(folder.path() / "weights", "new");
  CHECK(entries(folder.path()) == before);  // one gone, one written
  close(other);
  write(folder.path() / "weights", "new");
  CHECK(entries(folder.path()) == before - 1);
}

TEST_CASE("The cache folder follows the environment and may be missing") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  CHECK(in_child([&] {
          setenv("HALFSTEP_CACHE", (path + "/a/b").c_str(), 1);
          return cache_folder() == path + "/a/b" && fs::is_directory(path + "/a/b") ? 0 : 1;
        }) == 0);
  CHECK(in_child([&] {
          unsetenv("HALFSTEP_CACHE");
          setenv("XDG_CACHE_HOME", path.c_str(), 1);
          setenv("HOME", path.c_str(), 1);
          return has(cache_folder().string(), path) ? 0 : 1;
        }) == 0);
  CHECK(in_child([&] {
          setenv("HALFSTEP_CACHE", "/dev/null/x", 1);
          return cache_folder().empty() ? 0 : 1;
        }) == 0);
  CHECK(in_child([&] {
          fs::current_path(folder.path());
          setenv("HALFSTEP_CACHE", "off", 1);
          return cache_folder().empty() && !fs::exists("off") ? 0 : 1;
        }) == 0);
}

TEST_CASE("An empty variable counts as unset") {
  CHECK(in_child([] {
          setenv("HALFSTEP_TEST", "", 1);
          if (environment("HALFSTEP_TEST")) return 1;
          setenv("HALFSTEP_TEST", "v", 1);
          return environment("HALFSTEP_TEST") == "v" ? 0 : 2;
        }) == 0);
}

#endif
