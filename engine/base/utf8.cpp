#include "base/utf8.h"

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

}  // namespace halfstep
