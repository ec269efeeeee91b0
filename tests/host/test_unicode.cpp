#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "text/unicode.h"

using namespace halfstep;
using namespace std::string_literals;

TEST_CASE("UTF-8 is decoded, and each maximal part of what is none becomes U+FFFD") {
  using text::decode_utf8;
  CHECK(decode_utf8("a\u00e9\u4e2d\U0001f600") == U"a\u00e9\u4e2d\U0001f600");
  CHECK(decode_utf8("\0a"s) == U"\0a"s);
  // Table 3-8 of the Unicode Standard.
  CHECK(decode_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") == U"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA");
  // Table 3-9: surrogates.
  CHECK(decode_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") == U"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA");
  // Table 3-10: beyond U+10FFFF, and bytes that never occur.
  CHECK(decode_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") == U"\ufffd\ufffd\ufffd\ufffd\ufffdA\ufffd\ufffdB");
  // Table 3-11: sequences that are cut off.
  CHECK(decode_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == U"\ufffd\ufffd\ufffd\ufffdA");
  CHECK(decode_utf8("\xF0\x9F\x98") == U"\ufffd");
  CHECK(decode_utf8("") == U"");
}

TEST_CASE("every code point survives UTF-8") {
  std::u32string all;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xD800 || c > 0xDFFF) all.push_back(c);
  }
  CHECK(text::decode_utf8(text::encode_utf8(all)) == all);
}

TEST_CASE("characters have Unicode's categories") {
  for (const char32_t c : U"\t\n\v\f\r \u0085\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"s) {
    CAPTURE(static_cast<unsigned>(c));
    CHECK(text::is_space(c));
  }
  for (const char32_t c : U"\0\u200b\u200d\ufeff_a"s) CHECK_FALSE(text::is_space(c));
  for (const char32_t c : U"$+<=>^`|~!\"-_\u00a1\u2014\u3002\uff01"s) CHECK(text::is_punctuation(c));
  for (const char32_t c : U"a0 \n\u00a3\u20ac\u00d7"s) CHECK_FALSE(text::is_punctuation(c));
  for (const char32_t c : U"\0\x7f\u0085\u00ad\u200b\u202e\ue000"s) CHECK(text::is_control(c));
  for (const char32_t c : U"\u4e2d\u3400\uf900\U00020000"s) CHECK(text::is_chinese(c));
  for (const char32_t c : U"\u3042\u30a2\uac00\u3002"s) CHECK_FALSE(text::is_chinese(c));
  CHECK(text::is_number(U'\u0663'));
  CHECK(text::is_number(U'\u00bd'));
  CHECK(text::is_letter(U'\u05d0'));
  CHECK(text::is_mark(U'\u0301'));
}

TEST_CASE("accents decompose in canonical order, and lower case is the full mapping") {
  CHECK(text::decompose(U"\u00e9\ud55c\u1ec7") == U"e\u0301\u1112\u1161\u11abe\u0323\u0302");
  CHECK(text::decompose(U"a\u0301\u0323") == U"a\u0323\u0301");
  CHECK(text::decompose(U"\ufb01") == U"\ufb01");  // not canonical
  CHECK(text::decompose(U"") == U"");
  CHECK(text::decompose(std::u32string(1000, U'\u1ec7')).size() == 3000);
  std::u32string lower;
  for (const char32_t c : U"\u0130\u00c4\u03a3\u0410\U00010400"s) text::append_lower(lower, c);
  CHECK(lower == U"i\u0307\u00e4\u03c3\u0430\U00010428");
}
