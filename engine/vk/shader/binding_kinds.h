#pragma once

#include <cstdint>
#include <map>
#include <span>

namespace halfstep::vk {

/// What a shader takes a binding for.
enum class BindingKind : std::uint8_t { storage_buffer, texel_buffer, other };

/// Of each variable of set 0, by its binding.
std::map<std::uint32_t, BindingKind> binding_kinds(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
