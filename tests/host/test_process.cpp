#include <halfstep/error.h>
#include <halfstep/process.h>

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "host/temporary_folder.h"

#if !defined(_WIN32)
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

namespace {

// Runs `body` in a child, so that limits and signals do not touch this process: its exit code, or -signal.
int in_child(auto&& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(body());
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
    const std::string message = message_of([&] { write(file, big); });
    return has(message, "cannot write " + file.string()) && has(message, "File too large") ? 0 : 1;
  });
  CHECK(code == 0);
  CHECK(contents(file) == "old");
  CHECK(entries(folder.path()) == 1);
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
