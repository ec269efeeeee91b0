#pragma once

#include <halfstep/error.h>

#include <string>
#include <string_view>

namespace halfstep {

/// What `pointer`, of a public handle, refers to. Throws Error "[where] expected `what`, got one that was moved from" if
/// it is null.
template <typename Pointer>
auto& held(const Pointer& pointer, std::string_view where, std::string_view what) {
  if (pointer == nullptr) fail(where, "expected " + std::string(what) + ", got one that was moved from");
  return *pointer;
}

}  // namespace halfstep
