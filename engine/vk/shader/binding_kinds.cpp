#include "vk/shader/binding_kinds.h"

#include <algorithm>
#include <optional>

#include "vk/shader/additions.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t storage_uniform_constant = 0;
constexpr std::uint32_t storage_uniform = 2;
constexpr std::uint32_t storage_buffer = 12;
constexpr std::uint32_t decoration_buffer_block = 3;  // of storage buffers before they had a storage class
constexpr std::uint32_t dimension_buffer = 5;
constexpr std::uint32_t sampled = 1;

std::optional<std::uint32_t> decoration(const Declarations& module, std::uint32_t id, std::uint32_t kind) {
  const auto found = module.decorations.find(id);
  if (found == module.decorations.end()) return {};
  const auto one = std::ranges::find(found->second, kind, [](const auto& words) { return words[0]; });
  if (one == found->second.end()) return {};
  return one->size() > 1 ? (*one)[1] : 0;
}

BindingKind kind_of(const Declarations& module, std::uint32_t pointer_type) {
  const std::uint32_t storage = module.types.at(pointer_type).at(1);
  std::uint32_t id = module.pointee(pointer_type);
  if (module.types.at(id)[0] == op_type_sampled_image) id = module.types.at(id).at(1);
  const std::vector<std::uint32_t>& type = module.types.at(id);
  const bool block = type[0] == op_type_struct;
  if (block && storage == storage_buffer) return BindingKind::storage_buffer;
  if (block && storage == storage_uniform)
    return decoration(module, id, decoration_buffer_block) ? BindingKind::storage_buffer : BindingKind::uniform_buffer;
  const bool texels = type[0] == op_type_image && type.at(2) == dimension_buffer && type.at(6) == sampled;
  return texels && storage == storage_uniform_constant ? BindingKind::texel_buffer : BindingKind::other;
}

}  // namespace

std::map<BindingPlace, BindingKind> binding_kinds(std::span<const std::uint32_t> words) {
  const Declarations module(words);
  std::map<BindingPlace, BindingKind> kinds;
  for (const auto& [variable, type] : module.variables) {
    const std::optional<std::uint32_t> binding = decoration(module, variable, decoration_binding);
    if (!binding) continue;
    const BindingKind kind = kind_of(module, type);
    const std::uint32_t set = decoration(module, variable, decoration_descriptor_set).value_or(0);
    const auto [found, fresh] = kinds.try_emplace({set, *binding}, kind);
    if (!fresh && found->second != kind) found->second = BindingKind::other;
  }
  return kinds;
}

}  // namespace halfstep::vk
