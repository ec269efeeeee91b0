#pragma once

#include <halfstep/halfstep.h>

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace samples {

/// Throws an Error that says what could not be done to a file that is written, by errno.
[[noreturn]] inline void fail_to(const char* do_what, const std::filesystem::path& file) {
  halfstep::fail(halfstep::ErrorCode::system, file.string(),
                 fmt::format("cannot {} it: {}", do_what, std::generic_category().message(errno)));
}

}  // namespace samples
