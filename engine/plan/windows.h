#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace halfstep::plan {

/// Tensors have fewer elements, padding included: many kernels compute an element's index as a signed word.
inline constexpr std::uint64_t elements_end = std::uint64_t{1} << 31;

struct Dispatch;
struct Program;
struct Target;

/// How one operand is bound.
struct OperandWindows {
  std::uint32_t count = 1;  ///< 0: its kernel has its address, and must not use the binding
  std::uint32_t rest = 0;   ///< the binding of window 1; window 2 is at the next one, and so on
  std::string tensor{};     ///< its name, for errors; not compared

  auto operator<=>(const OperandWindows& other) const {
    return std::pair(count, rest) <=> std::pair(other.count, other.rest);
  }
  bool operator==(const OperandWindows& other) const { return count == other.count && rest == other.rest; }
};

/// How the operands of a dispatch are bound if one of them is larger than a binding of the device may be: as several
/// windows of 2^shift bytes each, the last one of what is left. Window 0 is at the operand's own binding, the others
/// come after those of all operands, once for each tensor. The kernel is rewritten for it: vk/shader/windows.h.
struct Windows {
  std::uint32_t shift = 0;
  std::vector<OperandWindows> operands{};  ///< empty: each operand is bound as a whole

  auto operator<=>(const Windows&) const = default;
};

/// Bytes of a window.
std::uint64_t window_bytes(const Target& target);
Windows windows_of(const Program& program, const Target& target, const Dispatch& dispatch);

/// The buffers that a dispatch binds: its operands, and all windows after the first of each tensor.
std::size_t bindings(const Program& program, const Target& target, const Dispatch& dispatch);
std::size_t bindings(const Dispatch& dispatch);

/// The bytes of a tensor that one binding of a dispatch spans, from `offset` in the tensor on.
struct BoundPart {
  std::size_t operand = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
/// For each binding of a dispatch, in order.
std::vector<BoundPart> bound_parts(const Program& program, const Dispatch& dispatch);

/// Throws Error where a dispatch takes more storage buffers than the device has, with its windows, or where an index of
/// 32 bits does not reach all elements of a tensor.
void check_bindings(const Program& program, const Target& target, const Dispatch& dispatch);

}  // namespace halfstep::plan
