#include <halfstep/error.h>

#include <fmt/format.h>

#include <string>

namespace halfstep {
namespace {

std::string text(std::string_view where, std::string_view message, std::string_view hint) {
  return hint.empty() ? fmt::format("[{}] {}", where, message) : fmt::format("[{}] {}. Hint: {}", where, message, hint);
}

}  // namespace

void fail(std::string_view where, std::string_view message, std::string_view hint) {
  throw Error(text(where, message, hint));
}

void fail_for_machine(std::string_view where, std::string_view message, std::string_view hint) {
  throw Error(text(where, message, hint), Error::Cause::machine);
}

}  // namespace halfstep
