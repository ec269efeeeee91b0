#include <halfstep/pattern.h>

#include <cstddef>

#include "base/utf8.h"

namespace halfstep {

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t at = 0;  // in the pattern
  std::size_t after_star = std::string_view::npos;
  std::size_t star_ends = 0;  // where in the name what the last * stands for ends
  for (std::size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      after_star = ++at;
      star_ends = i;
    } else if (at < pattern.size() && pattern[at] == '?') {
      ++at;
      i += first_character(name.substr(i));
    } else if (at < pattern.size() && pattern[at] == name[i]) {
      ++at;
      ++i;
    } else if (after_star != std::string_view::npos) {
      at = after_star;
      i = star_ends += first_character(name.substr(star_ends));
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace halfstep
