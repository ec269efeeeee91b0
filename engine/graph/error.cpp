#include <halfstep/error.h>

#include <fmt/format.h>

namespace halfstep {

void fail(std::string_view where, std::string_view message, std::string_view hint) {
  if (hint.empty()) throw Error(fmt::format("[{}] {}", where, message));
  throw Error(fmt::format("[{}] {}. Hint: {}", where, message, hint));
}

}  // namespace halfstep
