#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

namespace halfstep::vk {

/// What a shader takes a binding for.
enum class BindingKind : std::uint8_t { storage_buffer, texel_buffer, uniform_buffer, other };

/// Number of a descriptor set, and of a binding in it.
using BindingPlace = std::pair<std::uint32_t, std::uint32_t>;

/// Of each variable that has a binding.
std::map<BindingPlace, BindingKind> binding_kinds(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
