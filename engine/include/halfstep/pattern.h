#pragma once

#include <halfstep/language.h>

#include <string_view>

namespace halfstep {

/// Whether `name` matches `pattern`: `*` stands for any characters (or none), `?` for exactly one. Both are UTF-8; a
/// byte that is not counts as a character.
HALFSTEP_API bool matches(std::string_view pattern, std::string_view name);

}  // namespace halfstep
