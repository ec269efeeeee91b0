#include "text/unicode.h"

#include <halfstep/error.h>

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace halfstep::text {
namespace {

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool between(char32_t c, char32_t first, char32_t last) {
  return c >= first && c <= last;
}

/// The bytes of a character that begins with `lead`, and the range that its second byte lies in; 0 bytes if no
/// character begins so. Table 3-7 of the Unicode Standard.
struct Lead {
  std::size_t bytes = 0;
  std::uint8_t least = 0x80;
  std::uint8_t most = 0xBF;
};
Lead lead_of(std::uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {0};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

char32_t take_character(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.bytes <= 1) {
    const char32_t c = lead.bytes == 1 ? static_cast<char32_t>(byte(0)) : replacement;
    text.remove_prefix(1);
    return c;
  }
  char32_t c = byte(0) & (0x7FU >> lead.bytes);
  std::size_t taken = 1;
  for (; taken < lead.bytes && taken < text.size(); ++taken) {
    const std::uint8_t least = taken == 1 ? lead.least : 0x80;
    const std::uint8_t most = taken == 1 ? lead.most : 0xBF;
    if (byte(taken) < least || byte(taken) > most) break;
    c = c << 6 | (byte(taken) & 0x3FU);
  }
  text.remove_prefix(taken);
  return taken == lead.bytes ? c : replacement;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  while (!text.empty()) result.push_back(take_character(text));
  return result;
}

void append_utf8(std::string& text, char32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
  text.append(bytes.begin(), bytes.begin() + count);
}

std::string encode_utf8(std::u32string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char32_t c : text) append_utf8(result, c);
  return result;
}

bool is_letter(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_space(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return between(c, 0x09, 0x0D) || c == 0x85 || (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP);
}

bool is_mark(char32_t c) {
  return category_of(c) == UTF8PROC_CATEGORY_MN;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return between(c, '!', '/') || between(c, ':', '@') || between(c, '[', '`') || between(c, '{', '~');
  const utf8proc_category_t category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_control(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_chinese(char32_t c) {
  constexpr auto blocks = std::to_array<std::pair<char32_t, char32_t>>({{0x4E00, 0x9FFF},
                                                                        {0x3400, 0x4DBF},
                                                                        {0x20000, 0x2A6DF},
                                                                        {0x2A700, 0x2B73F},
                                                                        {0x2B740, 0x2B81F},
                                                                        {0x2B820, 0x2CEAF},
                                                                        {0xF900, 0xFAFF},
                                                                        {0x2F800, 0x2FA1F}});
  return std::ranges::any_of(blocks, [=](const auto& block) { return between(c, block.first, block.second); });
}

void append_lower(std::u32string& text, char32_t c) {
  if (c == 0x130) {  // I with a dot above: the only character whose lower case is two
    text += U"i\u0307";
    return;
  }
  text.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::u32string decompose(std::u32string_view text) {
  const std::string bytes = encode_utf8(text);
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());  // NOLINT: bytes as unsigned ones
  const auto size = static_cast<utf8proc_ssize_t>(bytes.size());
  const auto into = [&](std::u32string& result) {
    static_assert(sizeof(char32_t) == sizeof(utf8proc_int32_t));
    auto* codes = reinterpret_cast<utf8proc_int32_t*>(result.data());  // NOLINT: the same 32 bits
    const auto room = static_cast<utf8proc_ssize_t>(result.size());
    const utf8proc_ssize_t count = utf8proc_decompose(data, size, codes, room, UTF8PROC_DECOMPOSE);
    if (count < 0) fail(ErrorCode::out_of_memory, "text", utf8proc_errmsg(count));
    return static_cast<std::size_t>(count);
  };
  std::u32string result(text.size() + text.size() / 4 + 4, U'\0');
  std::size_t count = into(result);
  if (count > result.size()) {
    result.resize(count);
    count = into(result);
  }
  result.resize(count);
  return result;
}

}  // namespace halfstep::text
