#include "base/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace halfstep {

std::size_t utf8_bytes(std::string_view text) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const auto rest = text.substr(bytes);
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(rest.data()),
                                                     static_cast<utf8proc_ssize_t>(rest.size()), &code);
    if (length <= 0) break;
    bytes += static_cast<std::size_t>(length);
  }
  return bytes;
}

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

}  // namespace halfstep
