#include "base/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

namespace halfstep {
namespace {

/// What a text begins with.
struct Character {
  std::size_t bytes = 0;  ///< 0: none, or a byte that is no UTF-8
  utf8proc_int32_t code = 0;
};

Character character_of(std::string_view text) {
  Character character;
  const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                   static_cast<utf8proc_ssize_t>(text.size()), &character.code);
  if (length > 0) character.bytes = static_cast<std::size_t>(length);
  return character;
}

/// Whether a terminal, or a reader of lines, may take it for more than a character.
bool is_control(utf8proc_int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

}  // namespace

std::size_t utf8_bytes(std::string_view text) {
  std::size_t bytes = 0;
  while (const std::size_t more = character_of(text.substr(bytes)).bytes) bytes += more;
  return bytes;
}

std::size_t first_character(std::string_view text) {
  return std::max<std::size_t>(character_of(text).bytes, 1);
}

std::string on_one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const Character character = character_of(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(character.bytes, 1));
    if (character.bytes > 0 && !is_control(character.code)) {
      line += bytes;
    } else {
      for (const char byte : bytes) line += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    text.remove_prefix(bytes.size());
  }
  return line;
}

}  // namespace halfstep
