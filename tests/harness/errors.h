#pragma once

#include <halfstep/error.h>

#include <functional>
#include <string>
#include <string_view>

namespace halfstep::testing {

/// The text of the Error that a call throws; empty where it throws none.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace halfstep::testing
