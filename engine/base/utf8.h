#pragma once

#include <cstddef>
#include <string_view>

namespace halfstep {

/// How many bytes of `text`, from its first on, are UTF-8: all of them, or those before the first that is none.
std::size_t utf8_bytes(std::string_view text);

}  // namespace halfstep
