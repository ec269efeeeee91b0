#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace halfstep::vk {

/// Throws Error if the words of the application's kernel `name` are not valid SPIR-V for Vulkan 1.1. Drivers need not
/// check that, and may crash. Checks nothing in a library without SPIRV-Tools.
void check_spirv(std::span<const std::uint32_t> words, std::string_view name);

}  // namespace halfstep::vk
