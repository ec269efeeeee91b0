#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace halfstep::vk {

/// Throws Error where the words of the kernel called `name`, which the application brought, are no valid SPIR-V for
/// Vulkan 1.1: drivers need not check that, and may crash.
void check_spirv(std::span<const std::uint32_t> words, std::string_view name);

}  // namespace halfstep::vk
