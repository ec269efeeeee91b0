#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace halfstep {

/// How many bytes of `text`, from its first on, are UTF-8: all of them, or those before the first that is none.
std::size_t utf8_bytes(std::string_view text);

/// How many bytes the first character of `text` has: 1 for a byte that is no UTF-8. `text` is not empty.
std::size_t first_character(std::string_view text);

/// `text` as one line of UTF-8. What it quotes may come from a file: the bytes of control characters and of separators
/// of lines and paragraphs, and those that are no UTF-8, are written as "\x0a".
std::string on_one_line(std::string_view text);

}  // namespace halfstep
