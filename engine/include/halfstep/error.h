#pragma once

#include <halfstep/language.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace halfstep {

/// Every failure that a caller can act on. Its text reads
/// "[where] expected X, got Y. Hint: Z" and names the tensor, operator or file.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws Error with the text "[where] message. Hint: hint" (without the hint where it is empty).
/// `message` carries no final full stop.
[[noreturn]] void fail(std::string_view where, std::string_view message, std::string_view hint = {});

}  // namespace halfstep
