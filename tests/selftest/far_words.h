#pragma once

#include "selftest/cases.h"
#include "vk/command/memory.h"

namespace halfstep::selftest {

/// Stores and loads words all over a buffer by its address, `apart` bytes from each other, and reads them back by
/// copies.
void check_far_words(CaseReport& report, const vk::Buffer& buffer, std::uint64_t apart);

}  // namespace halfstep::selftest
