#pragma once

#include <halfstep/error.h>

#include <string>
#include <string_view>

namespace halfstep {

/// A size that an index, a kernel or the device does not reach, and a smaller batch may. Trainer::compile of a model
/// then goes on to smaller ones.
class BeyondLimit : public Error {
 public:
  using Error::Error;
};

/// Throws BeyondLimit as fail() throws Error.
[[noreturn]] void fail_beyond_limit(ErrorCode code, std::string_view where, std::string_view message,
                                    std::string_view hint);
/// The same with ErrorCode::bad_argument.
[[noreturn]] void fail_beyond_limit(std::string_view where, std::string_view message, std::string_view hint);

}  // namespace halfstep
