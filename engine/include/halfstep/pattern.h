#pragma once

#include <halfstep/language.h>

#include <string_view>

namespace halfstep {

/// Whether `name` is what `pattern` describes: `*` stands for any characters (none too), `?` for one.
HALFSTEP_API bool matches(std::string_view pattern, std::string_view name);

}  // namespace halfstep
