#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Characters as tokenizers see them: Unicode's code points and their general categories, by utf8proc.
namespace halfstep::text {

/// What stands for bytes that are no UTF-8.
constexpr char32_t replacement = 0xFFFD;

/// The code points of UTF-8. Bytes that are none give U+FFFD, one for each maximal part of a character, as Unicode
/// recommends (The Unicode Standard, section 3.9) and Python's "replace" does.
std::u32string decode_utf8(std::string_view text);
/// Takes the first of them off the front of `text`, which is not empty.
char32_t take_character(std::string_view& text);

/// Appends a code point, which is not a surrogate, in UTF-8.
void append_utf8(std::string& text, char32_t c);
std::string encode_utf8(std::u32string_view text);

bool is_letter(char32_t c);       ///< categories L*
bool is_number(char32_t c);       ///< categories N*
bool is_space(char32_t c);        ///< the property White_Space
bool is_mark(char32_t c);         ///< category Mn: accents that are characters of their own
bool is_punctuation(char32_t c);  ///< categories P*, and every ASCII character that is neither letter, digit nor space
/// Categories Cc, Cf and Co: control characters, formats and private use.
bool is_control(char32_t c);
/// The blocks of Chinese characters that BERT splits at; Hangul, Hiragana and Katakana are not among them.
bool is_chinese(char32_t c);

/// Appends the character's lower case by Unicode's full mapping, without regard to its neighbours.
void append_lower(std::u32string& text, char32_t c);

/// Canonical decomposition (NFD): accents become characters of their own, in canonical order.
std::u32string decompose(std::u32string_view text);

}  // namespace halfstep::text
