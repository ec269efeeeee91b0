#include "data/gzip_file.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace halfstep::data {

namespace fs = std::filesystem;

namespace {

gzFile gz(void* file) {
  return static_cast<gzFile>(file);
}

[[noreturn]] void fail_to_read(const fs::path& path, std::string_view reason) {
  fail(ErrorCode::bad_file, "data", fmt::format("cannot read {}: {}", path.string(), reason));
}

void* open(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail_to_read(path, "there is no such file");
  if (error) fail_to_read(path, error.message());
  if (!fs::is_regular_file(status)) fail_to_read(path, "it is not an ordinary file");
  errno = 0;
#if defined(_WIN32)
  gzFile file = gzopen_w(path.c_str(), "rb");
#else
  gzFile file = gzopen(path.c_str(), "rb");
#endif
  if (file == nullptr) fail_to_read(path, errno != 0 ? std::strerror(errno) : "out of memory");
  gzbuffer(file, 1U << 17);
  return file;
}

}  // namespace

void GzipFile::Close::operator()(void* file) const {
  gzclose_r(gz(file));
}

GzipFile::GzipFile(const fs::path& path) : path_(path), file_(open(path)) {}

std::size_t GzipFile::read(std::span<std::uint8_t> bytes) {
  constexpr std::size_t most = 1U << 30;  // gzread counts in int
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto wanted = static_cast<unsigned>(std::min(bytes.size() - done, most));
    const int got = gzread(gz(file_.get()), bytes.data() + done, wanted);
    int code = Z_OK;
    const std::string_view text = gzerror(gz(file_.get()), &code);
    // For a truncated gzipped file, gzread returns the data before the end, with Z_BUF_ERROR: the caller detects the
    // missing rest.
    if (got < 0 || (code != Z_OK && code != Z_BUF_ERROR)) {
      if (code == Z_ERRNO) fail_to_read(path_, std::strerror(errno));
      // zlib puts the path before its message.
      const std::size_t words = text.rfind(": ");
      fail_to_read(path_, fmt::format("its packing is broken ({})",
                                      words == std::string_view::npos ? text : text.substr(words + 2)));
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::vector<std::uint8_t> GzipFile::read_up_to(std::uint64_t size) {
  // Images compress to a quarter at best, so this usually reserves enough. Beyond it, memory grows with the data that
  // is actually read, since a header may claim any size.
  std::error_code error;
  const std::uintmax_t packed = fs::file_size(path_, error);
  const std::uint64_t first = (1U << 20) + (error ? 0 : 4 * packed);
  std::vector<std::uint8_t> bytes;
  try {
    while (bytes.size() < size) {
      const std::size_t start = bytes.size();
      bytes.resize(static_cast<std::size_t>(std::min(size, std::max<std::uint64_t>(first, 2 * bytes.size()))));
      const std::size_t got = read(std::span(bytes).subspan(start));
      if (start + got == bytes.size()) continue;
      bytes.resize(start + got);
      break;
    }
  } catch (const std::bad_alloc&) {
    fail_to_read(path_, fmt::format("its {} bytes do not fit in memory", size));
  }
  return bytes;
}

bool GzipFile::at_end() {
  std::uint8_t next = 0;
  const bool ended = read(std::span(&next, 1)) == 0;
  int code = Z_OK;
  gzerror(gz(file_.get()), &code);
  if (ended && code == Z_BUF_ERROR) fail_to_read(path_, "its packing breaks off; it is truncated");
  return ended;
}

}  // namespace halfstep::data
