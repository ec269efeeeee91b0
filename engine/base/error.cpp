#include <halfstep/error.h>

#include <fmt/format.h>

#include <string>

#include "base/utf8.h"

namespace halfstep {

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
