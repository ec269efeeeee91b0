#include "vk/shader/shaders.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

namespace halfstep::vk {
namespace {

struct Used {
  std::mutex mutex;
  std::set<std::string_view> names;
};

Used& used() {
  static Used used;
  return used;
}

const std::unordered_map<std::string_view, const EmbeddedShader*>& by_name() {
  static const auto index = [] {
    std::unordered_map<std::string_view, const EmbeddedShader*> made;
    for (const EmbeddedShader& shader : embedded_shaders()) made.emplace(shader.name, &shader);
    return made;
  }();
  return index;
}

ShaderPatch& patch() {
  static ShaderPatch patch;
  return patch;
}

}  // namespace

void patch_shaders(ShaderPatch wanted) {
  patch() = std::move(wanted);
}

std::vector<std::uint32_t> patched(std::string_view name, std::vector<std::uint32_t> words) {
  return patch() ? patch()(name, std::move(words)) : words;
}

const EmbeddedShader& find_shader(std::string_view name) {
  const auto found = by_name().find(name);
  if (found == by_name().end()) {
    fail("shader", fmt::format("expected a shader variant of the library, got {}", name));
  }
  const std::lock_guard lock(used().mutex);
  used().names.insert(found->second->name);
  return *found->second;
}

std::vector<std::string> used_shaders() {
  const std::lock_guard lock(used().mutex);
  return {used().names.begin(), used().names.end()};
}

}  // namespace halfstep::vk
