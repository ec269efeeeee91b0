#include <halfstep/error.h>

#include <fmt/format.h>

#include <string>

#include "base/beyond_limit.h"
#include "base/utf8.h"

namespace halfstep {
namespace {

std::string error_text(std::string_view where, std::string_view message, std::string_view hint) {
  const std::string text = fmt::format("[{}] {}", where, message);
  return on_one_line(hint.empty() ? text : fmt::format("{}. Hint: {}", text, hint));
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
  throw Error(error_text(where, message, hint), code);
}

void fail(std::string_view where, std::string_view message, std::string_view hint) {
  fail(ErrorCode::bad_argument, where, message, hint);
}

void fail_beyond_limit(ErrorCode code, std::string_view where, std::string_view message, std::string_view hint) {
  throw BeyondLimit(error_text(where, message, hint), code);
}

void fail_beyond_limit(std::string_view where, std::string_view message, std::string_view hint) {
  fail_beyond_limit(ErrorCode::bad_argument, where, message, hint);
}

}  // namespace halfstep
