#include <halfstep/data.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>

#include "temporary_folder.h"

namespace halfstep {
namespace {

template <typename T>
std::filesystem::path write(const TemporaryFolder& folder, const std::vector<T>& tokens) {
  const std::filesystem::path path = folder.path() / "text";
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(tokens.data()), static_cast<std::streamsize>(tokens.size() * sizeof(T)));
  return path;
}

/// Element e of a field's sample.
template <typename T>
T element(const Field& field, std::int64_t sample, std::int64_t e) {
  const auto at = static_cast<std::size_t>(field.first + sample * field.step() + e) * sizeof(T);
  T value;
  std::memcpy(&value, field.data.data() + at, sizeof(T));
  return value;
}

template <typename T>
void check_windows(ElementType type) {
  const TemporaryFolder folder;
  std::vector<T> text;
  for (T i = 0; i < 23; ++i) text.push_back(static_cast<T>(1000 + i));
  const std::filesystem::path path = write(folder, text);
  for (const std::int64_t length : {1, 5, 11, 22}) {
    for (const std::int64_t stride : {0, 1, 4, 30}) {
      const Dataset set = read_tokens(path, {.type = type, .length = length, .vocabulary = 1023, .stride = stride});
      const std::int64_t step = stride > 0 ? stride : length;
      CHECK(set.count == (23 - 1 - length) / step + 1);
      REQUIRE(set.fields.size() == 2);
      CHECK(set.fields[0].data.data() == set.fields[1].data.data());
      for (std::int64_t i = 0; i < set.count; ++i) {
        for (std::int64_t e = 0; e < length; ++e) {
          CHECK(element<T>(set.fields[0], i, e) == 1000 + i * step + e);
          CHECK(element<T>(set.fields[1], i, e) == 1001 + i * step + e);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("a text is cut into windows, and their targets are the next tokens") {
  check_windows<std::uint16_t>(ElementType::u16);
  check_windows<std::uint32_t>(ElementType::u32);
}

TEST_CASE("a text that is too short, torn or beyond its vocabulary is refused") {
  const TemporaryFolder folder;
  const std::filesystem::path path = write<std::uint16_t>(folder, {1, 2, 3, 4, 9});
  const auto refused = [&](const TokenWindows& windows, const char* message) {
    CHECK_THROWS_WITH_AS(read_tokens(path, windows), doctest::Contains(message), Error);
  };
  CHECK(read_tokens(path, {.length = 4}).count == 1);
  refused({.length = 5}, "expected a window of 5 tokens and the one after it, got 5 tokens");
  refused({.length = 0}, "expected a positive length and a stride from 0 on, got 0 and 0");
  refused({.length = 2, .stride = -1}, "got 2 and -1");
  refused({.type = ElementType::u32, .length = 1}, "expected whole tokens of u32, got 10 bytes");
  refused({.type = ElementType::u8, .length = 1}, "expected tokens of u16 or u32, got u8");
  refused({.length = 2, .vocabulary = 9}, "expected values below 9, got 9 in element 4");
  write<std::uint16_t>(folder, {});
  refused({.length = 1}, "got 0 tokens");
  std::filesystem::remove(path);
  refused({.length = 1}, "cannot read");
}

}  // namespace halfstep
