#include "data/idx.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "data/gzip_file.h"

namespace halfstep::data {

namespace fs = std::filesystem;

namespace {

constexpr std::uint8_t unsigned_byte = 8;
constexpr std::int64_t most_elements = std::int64_t{1} << 40;

[[noreturn]] void fail_on(const GzipFile& file, std::string_view message) {
  fail(ErrorCode::bad_file, "idx", fmt::format("{}: {}", file.path().string(), message));
}

void read_header_bytes(GzipFile& file, std::span<std::uint8_t> bytes) {
  const std::size_t got = file.read(bytes);
  if (got < bytes.size()) {
    fail_on(file, fmt::format("expected {} more bytes of its header, got {}", bytes.size(), got));
  }
}

// Returns the rank from the first four bytes.
int read_magic(GzipFile& file, int least_rank, int most_rank) {
  std::array<std::uint8_t, 4> magic{};
  read_header_bytes(file, magic);
  if (magic[0] != 0 || magic[1] != 0) {
    fail_on(file, fmt::format("expected an IDX file, which starts with 00 00, got {:02x} {:02x}", magic[0], magic[1]));
  }
  if (magic[2] != unsigned_byte) {
    fail_on(file, fmt::format("expected elements of type 08 (unsigned byte), got {:02x}", magic[2]));
  }
  const int rank = magic[3];
  if (rank < least_rank || rank > most_rank) {
    const std::string ranks =
        least_rank == most_rank ? fmt::format("{}", most_rank) : fmt::format("{} to {}", least_rank, most_rank);
    fail_on(file, fmt::format("expected an array with {} axes, got {}", ranks, rank));
  }
  return rank;
}

Shape read_shape(GzipFile& file, int rank) {
  Shape shape;
  std::int64_t total = 1;
  for (int axis = 0; axis < rank; axis++) {
    std::array<std::uint8_t, 4> word{};
    read_header_bytes(file, word);
    const std::int64_t extent = std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3];
    shape.push_back(extent);
    if (extent == 0) fail_on(file, fmt::format("expected positive extents, got 0 on axis {}", axis));
    if (extent > most_elements / total) {
      fail_on(file, fmt::format("expected at most {} elements, got extents {{{}, ...}}", most_elements,
                                fmt::join(shape, ", ")));
    }
    total *= extent;
  }
  return shape;
}

}  // namespace

IdxArray read_idx_array(const fs::path& path, int least_rank, int most_rank) {
  GzipFile file(path);
  IdxArray array;
  array.shape = read_shape(file, read_magic(file, least_rank, most_rank));
  const auto size = static_cast<std::uint64_t>(elements(array.shape));
  array.bytes = file.read_up_to(size);
  if (array.bytes.size() < size) {
    fail_on(file, fmt::format("expected {} elements for the extents {} in its header, got {}; it is truncated", size,
                              to_string(array.shape), array.bytes.size()));
  }
  if (!file.at_end()) {
    fail_on(file, fmt::format("expected {} elements for the extents {} in its header, got more", size,
                              to_string(array.shape)));
  }
  return array;
}

}  // namespace halfstep::data
