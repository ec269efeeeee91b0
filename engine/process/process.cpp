#include <halfstep/error.h>
#include <halfstep/process.h>

#include <fmt/format.h>

#include <cstdlib>

#include "process/files.h"

namespace halfstep {

namespace fs = std::filesystem;

namespace process {

fs::path destination(const fs::path& file) {
  if (!file.has_filename()) fail("file", fmt::format("expected the name of a file, got '{}'", file.string()));
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::none) fail_to("write", file, error);
  if (!fs::exists(status)) return file;
  if (fs::is_directory(status)) fail("file", fmt::format("expected a file, got the folder {}", file.string()));
  if (!fs::is_regular_file(status)) {
    fail("file", fmt::format("expected an ordinary file, got the device or pipe {}", file.string()));
  }
  const fs::path resolved = fs::canonical(file, error);
  return error ? file : resolved;
}

fs::path folder(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

void fail_to(std::string_view what, const fs::path& file, const std::error_code& error) {
  fail("file", fmt::format("cannot {} {}: {}", what, file.string(), error.message()));
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
  // The XDG base directory specification has relative paths ignored.
  if (const auto xdg = environment("XDG_CACHE_HOME"); xdg && fs::path(*xdg).is_absolute()) return fs::path(*xdg);
  if (const auto home = environment("HOME")) return fs::path(*home) / ".cache";
#endif
  return {};
}

}  // namespace

fs::path cache_folder() {
  const auto chosen = environment("HALFSTEP_CACHE");
  const fs::path base = chosen ? fs::path(*chosen) : user_cache_folder();
  if (base.empty()) return {};
  const fs::path cache = chosen ? base : base / "halfstep";
  std::error_code error;
  fs::create_directories(cache, error);
  return fs::is_directory(cache, error) ? cache : fs::path();
}

void check_writable(const fs::path& file) {
  process::Temporary probe(process::destination(file));
}

void write_atomically(const fs::path& file, std::span<const Bytes> parts) {
  const fs::path destination = process::destination(file);
  process::Temporary temporary(destination);
  for (const Bytes part : parts) temporary.write(part);
  temporary.replace();
}

}  // namespace halfstep
