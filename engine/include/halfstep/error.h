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
  /// What must change before the same call can succeed.
  enum class Cause : bool {
    input,    ///< what the caller or a file gave
    machine,  ///< the machine: a full disk, no memory left, a lost device, no Vulkan driver
  };

  explicit Error(const std::string& text, Cause cause = Cause::input) : std::runtime_error(text), cause_(cause) {}
  Cause cause() const noexcept { return cause_; }

 private:
  Cause cause_;
};

/// Throws Error with the text "[where] message. Hint: hint" (without the hint where it is empty).
/// `message` carries no final full stop.
[[noreturn]] void fail(std::string_view where, std::string_view message, std::string_view hint = {});
/// The same with Cause::machine.
[[noreturn]] void fail_for_machine(std::string_view where, std::string_view message, std::string_view hint = {});

}  // namespace halfstep
