#include <halfstep/error.h>

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "base/utf8.h"

namespace halfstep {

namespace {

/// `text` as one line of UTF-8. What it quotes may come from a file: control characters, and bytes that are no UTF-8,
/// are written as "\x0a".
std::string on_one_line(std::string_view text) {
  std::string line;
  std::size_t valid = 0;  // where the UTF-8 that was found last ends
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i >= valid) valid = i + utf8_bytes(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = byte < 0x20 || byte == 0x7F;
    line += i < valid && !control ? std::string(1, text[i]) : fmt::format("\\x{:02x}", byte);
  }
  return line;
}

}  // namespace

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_argument:
      return "bad argument";
    case ErrorCode::bad_file:
      return "bad file";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_memory:
      return "out of memory";
    case ErrorCode::device_lost:
      return "device lost";
    case ErrorCode::numerics:
      return "numerics";
    case ErrorCode::system:
      return "system";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "?";
}

void fail(ErrorCode code, std::string_view where, std::string_view message, std::string_view hint) {
  const std::string text = fmt::format("[{}] {}", where, message);
  throw Error(on_one_line(hint.empty() ? text : fmt::format("{}. Hint: {}", text, hint)), code);
}

void fail(std::string_view where, std::string_view message, std::string_view hint) {
  fail(ErrorCode::bad_argument, where, message, hint);
}

}  // namespace halfstep
