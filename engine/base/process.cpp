#include <halfstep/error.h>
#include <halfstep/process.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/files.h"

namespace halfstep {

namespace fs = std::filesystem;

namespace process {

namespace {

/// `file`, or its target if it is a symbolic link. The target need not exist.
fs::path followed(fs::path file) {
  constexpr int most_links = 40;  // the same limit as on Linux
  std::error_code error;
  for (int i = 0; fs::is_symlink(fs::symlink_status(file, error)); ++i) {
    if (i == most_links) fail_to("write", file, std::make_error_code(std::errc::too_many_symbolic_link_levels));
    const fs::path target = fs::read_symlink(file, error);
    if (error) fail_to("write", file, error);
    file = folder(file) / target;
  }
  return file;
}

/// Whether an error means that the machine ran out of a resource, rather than that a name is wrong.
bool is_of_machine(const std::error_code& error) {
  constexpr std::errc causes[] = {
      std::errc::no_space_on_device, std::errc::file_too_large,      std::errc::io_error,
      std::errc::not_enough_memory,  std::errc::too_many_files_open, std::errc::too_many_files_open_in_system};
#if defined(EDQUOT)
  if (error.value() == EDQUOT) return true;
#endif
  return std::ranges::any_of(causes, [&](std::errc cause) { return error == cause; });
}

}  // namespace

fs::path destination(const fs::path& file) {
  const auto expect_name = [&file](bool is_name) {
    if (!is_name) fail("file", fmt::format("expected the name of a file, got '{}'", file.string()));
  };
  expect_name(file.has_filename());
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  const bool beneath_file = error == std::errc::not_a_directory;
  if (status.type() == fs::file_type::none || beneath_file) fail_to("write", file, error);
  if (!fs::exists(status)) {
    fs::path target = followed(file);
    expect_name(target.has_filename() && target.filename() != "." && target.filename() != "..");
    return target;
  }
  if (fs::is_directory(status)) fail("file", fmt::format("expected a file, got the folder {}", file.string()));
  if (!fs::is_regular_file(status)) {
    fail("file", fmt::format("expected an ordinary file, got the device or pipe {}", file.string()));
  }
  if (read_only(file))
    fail("file", fmt::format("expected a file that may be written, got the read-only {}", file.string()));
  const fs::path resolved = fs::canonical(file, error);
  return error ? file : resolved;
}

fs::path folder(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

fs::path made_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return fs::is_directory(folder, error) ? folder : fs::path();
}

void fail_to(std::string_view what, const fs::path& file, const std::error_code& error) {
  const std::string text = fmt::format("cannot {} {}: {}", what, file.string(), error.message());
  fail(is_of_machine(error) ? ErrorCode::system : ErrorCode::bad_file, "file", text);
}

}  // namespace process

std::optional<std::string> environment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') return {};
  return value;
}

namespace {

fs::path user_cache_folder() {
#if defined(_WIN32)
  if (const auto local = environment("LOCALAPPDATA")) return fs::path(*local);
#elif defined(__APPLE__)
  if (const auto home = environment("HOME")) return fs::path(*home) / "Library" / "Caches";
#else
  // The XDG base directory specification says that relative paths are ignored.
  if (const auto xdg = environment("XDG_CACHE_HOME"); xdg && fs::path(*xdg).is_absolute()) return fs::path(*xdg);
  if (const auto home = environment("HOME")) return fs::path(*home) / ".cache";
#endif
  return {};
}

}  // namespace

fs::path cache_folder() {
  const auto chosen = environment("HALFSTEP_CACHE");
  if (chosen == "off") return {};
  const fs::path base = chosen ? fs::path(*chosen) : user_cache_folder();
  if (base.empty()) return {};
  return process::made_folder(chosen ? base : base / "halfstep");
}

fs::path written_file(const fs::path& file) {
  const fs::path destination = process::destination(file);
  std::error_code error;
  const fs::path absolute = fs::absolute(process::folder(destination), error);
  const fs::path folder = fs::weakly_canonical(absolute, error);  // which need not exist
  return (error ? absolute : folder) / destination.filename();
}

void check_writable(const fs::path& file) {
  process::Temporary probe(process::destination(file));
}

void write_atomically(const fs::path& file, std::span<const Bytes> parts) {
  const fs::path destination = process::destination(file);
  process::remove_stale_temporaries(process::folder(destination));
  process::Temporary temporary(destination);
  for (const Bytes part : parts) temporary.write(part);
  temporary.replace();
}

}  // namespace halfstep
