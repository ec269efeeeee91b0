#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "vk/shader/additions.h"

namespace halfstep::vk {

/// A load, store or atomic of an element, or of a part of one, of a buffer that is bound as windows.
struct WindowAccess {
  std::uint32_t opcode = 0;
  std::uint32_t variable = 0;
  std::uint32_t pointer_type = 0;
  std::vector<std::uint32_t> indices;   ///< ids: of the member, of the element, then into it
  std::vector<std::uint32_t> operands;  ///< the instruction's, after its pointer; a store's value is apart
  std::uint32_t value = 0;              ///< of a store
  std::uint32_t result_type = 0;        ///< 0: there is no result
  std::uint32_t count = 0;              ///< of windows
  std::uint32_t rest = 0;               ///< binding of window 1
  std::uint32_t elements = 0;           ///< of a window, a power of two
};

/// Functions that branch to the window which has an element, one for each kind of access, added to a module.
class WindowFunctions {
 public:
  explicit WindowFunctions(Additions& to) : to_(&to) {}

  /// Appends to `body` the call that does what an access does. A value of f16 that may not be computed with is f32, as
  /// its result and where it is stored: `result_type` and `value` are.
  void call(std::vector<std::uint32_t>& body, const WindowAccess& access, std::uint32_t result);
  /// The type of f32 that f16 of this type is passed as.
  std::uint32_t wide(std::uint32_t narrow);

 private:
  class Body;

  std::uint32_t function_for(const WindowAccess& access, const std::vector<std::uint32_t>& key);

  Additions* to_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> made_;
};

}  // namespace halfstep::vk
