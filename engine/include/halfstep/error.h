#pragma once

#include <halfstep/language.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace halfstep {

/// The kind of a failure, so that a caller can decide how to react.
enum class ErrorCode : std::uint8_t {
  bad_argument,   ///< an invalid argument of the caller: a shape, an option, a name
  bad_file,       ///< a file that is missing, damaged, or of another format or model
  unsupported,    ///< the device or driver cannot do it
  out_of_memory,  ///< on the device or the host
  device_lost,    ///< the driver lost the device; all data on it is gone
  numerics,       ///< training stopped at a number that is not finite
  system,         ///< the operating system: a full disk, no Vulkan driver
  cancelled,      ///< as the caller asked: TrainerOptions::cancel
};

/// "bad argument", "device lost", ...
HALFSTEP_API std::string_view name(ErrorCode code);

/// Every failure that a caller can act on. Its text reads "[where] expected X, got Y. Hint: Z" and names the tensor,
/// operator or file.
class HALFSTEP_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text, ErrorCode code = ErrorCode::bad_argument)
      : std::runtime_error(text), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// Throws Error with the text "[where] message. Hint: hint", or without the hint if it is empty. `message` does not end
/// in a full stop. The text is one line of UTF-8: control characters and other bytes are written as "\x0a".
[[noreturn]] HALFSTEP_API void fail(ErrorCode code, std::string_view where, std::string_view message,
                                    std::string_view hint = {});
/// The same with ErrorCode::bad_argument.
[[noreturn]] HALFSTEP_API void fail(std::string_view where, std::string_view message, std::string_view hint = {});

}  // namespace halfstep
