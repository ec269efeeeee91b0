#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "base/utf8.h"

using halfstep::utf8_bytes;
using namespace std::string_view_literals;

TEST_CASE("UTF-8 is told from other bytes, as Unicode defines it") {
  for (const std::string_view text :
       {""sv, "weight"sv, "\0\x7f"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv, "\xed\x9f\xbf"sv, "\xee\x80\x80"sv,
        "\xef\xbf\xbf"sv, "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv}) {
    CHECK(utf8_bytes(text) == text.size());
  }
  // Alone, cut, longer than needed, half a pair of UTF-16, beyond the last code.
  for (const std::string_view text :
       {"\x80"sv, "\xff"sv, "\xe9t"sv, "\xc2"sv, "\xe0\xa0"sv, "\xf0\x90\x80"sv, "\xc1\xbf"sv, "\xe0\x9f\xbf"sv,
        "\xf0\x8f\xbf\xbf"sv, "\xed\xa0\x80"sv, "\xed\xbf\xbf"sv, "\xf4\x90\x80\x80"sv, "\xf8\x88\x80\x80\x80"sv}) {
    CHECK(utf8_bytes(text) == 0);
    CHECK(utf8_bytes("caf\xc3\xa9" + std::string(text) + "e") == 5);
  }
}

TEST_CASE("an Error is one line of UTF-8, whatever a name in it has") {
  const auto quoted = [](std::string_view name) -> std::string {
    try {
      halfstep::fail("file", "got " + std::string(name));
    } catch (const halfstep::Error& error) {
      return error.what();
    }
  };
  CHECK(quoted("caf\xc3\xa9 \\n") == "[file] got caf\xc3\xa9 \\n");
  CHECK(quoted("a\nb\r\x1b[31m\x7f") == "[file] got a\\x0ab\\x0d\\x1b[31m\\x7f");
  CHECK(quoted("\0c"sv) == "[file] got \\x00c");
  // Control characters of two bytes, and separators of lines and of paragraphs.
  CHECK(quoted("a\u009b2J\u0085b") == "[file] got a\\xc2\\x9b2J\\xc2\\x85b");
  CHECK(quoted("\xc2\x80\xc2\x9f\u00a0") == "[file] got \\xc2\\x80\\xc2\\x9f\u00a0");
  CHECK(quoted("\u2027\u2028\u2029\u202f") == "[file] got \u2027\\xe2\\x80\\xa8\\xe2\\x80\\xa9\u202f");
  CHECK(quoted("\xff\xc3\xa9\xe9t\xf0\x90") == "[file] got \\xff\xc3\xa9\\xe9t\\xf0\\x90");
}
