#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/windows.h"

namespace halfstep::vk {

/// The shader with the storage buffers of set 0 as a dispatch's operands are bound: where an operand has several
/// windows, each load, store and atomic of an element whose index is not a constant calls a function, appended to the
/// module, that branches to the window that has the element. It needs no feature of the device. Throws Error that names
/// `shader` and the binding where that is used in another way: where the elements do not begin at the buffer's first
/// byte or do not have a power of two of bytes, where a pointer to one is passed on, or the array's length is asked
/// for.
std::vector<std::uint32_t> with_windows(std::span<const std::uint32_t> words, const plan::Windows& windows,
                                        std::string_view shader);

}  // namespace halfstep::vk
