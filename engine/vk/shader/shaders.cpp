#include "vk/shader/shaders.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "vk/shader/packs.h"

namespace halfstep::vk {
namespace {

/// Where a variant's SPIR-V lies.
struct Place {
  const ShaderPack* pack;
  std::size_t first;  ///< word in the pack's
  std::size_t words;
  bool bf16;
};

/// The name of a variant on words as that of a type, if it is one.
std::string name_for(std::string_view variant, std::string_view type) {
  constexpr std::string_view axis_value = ".words";
  std::string name(variant);
  const std::size_t at = name.find(axis_value);
  if (at != std::string::npos) name.replace(at + 1, axis_value.size() - 1, type);
  return name;
}

/// By name. A variant on words has two: that of f16, `packed`, and that of bf16.
const std::map<std::string, Place, std::less<>>& places() {
  static const auto index = [] {
    std::map<std::string, Place, std::less<>> made;
    for (const ShaderPack* pack : shader_packs()) {
      std::size_t first = 0;
      for (const PackedVariant& variant : pack->variants) {
        made.emplace(name_for(variant.name, "packed"), Place{pack, first, variant.words, false});
        made.emplace(name_for(variant.name, "bf16"), Place{pack, first, variant.words, true});
        first += variant.words;
      }
    }
    return made;
  }();
  return index;
}

/// A variant that was asked for, with its memory.
struct Expanded {
  std::vector<std::uint32_t> words;
  EmbeddedShader shader;
};

/// What was asked for, and the shader that was expanded last.
class Expansions {
 public:
  const EmbeddedShader& get(std::string_view name, const Place& place) {
    const std::lock_guard lock(mutex_);
    const auto found = expanded_.find(name);
    if (found != expanded_.end()) return found->second.shader;
    if (place.pack != last_) {
      last_words_ = expand(*place.pack);
      last_ = place.pack;
    }
    const auto begin = last_words_.begin() + static_cast<std::ptrdiff_t>(place.first);
    Expanded& made = expanded_[name];
    made.words.assign(begin, begin + static_cast<std::ptrdiff_t>(place.words));
    made.shader = {name, made.words, place.bf16};
    return made.shader;
  }

  std::vector<std::string> names() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, expanded] : expanded_) names.emplace_back(name);
    return names;
  }

 private:
  std::mutex mutex_;
  std::map<std::string_view, Expanded> expanded_;
  const ShaderPack* last_ = nullptr;
  std::vector<std::uint32_t> last_words_;
};

Expansions& expansions() {
  static Expansions all;
  return all;
}

struct Patch {
  ShaderPatch apply{};
  RoundsPatch by_rounds{};
  std::uint64_t number = 0;
};

Patch& patch() {
  static Patch newest;
  return newest;
}

}  // namespace

void patch_shaders(ShaderPatch wanted) {
  patch().apply = std::move(wanted);
  ++patch().number;
}

std::uint64_t shader_patches() {
  return patch().number;
}

void patch_rounds(RoundsPatch wanted) {
  patch().by_rounds = std::move(wanted);
}

bool patches_rounds() {
  return patch().by_rounds != nullptr;
}

std::vector<std::uint32_t> patched(std::string_view name, std::vector<std::uint32_t> words, std::int64_t rounds) {
  if (patch().apply) words = patch().apply(name, std::move(words));
  return patches_rounds() ? patch().by_rounds(std::move(words), rounds) : words;
}

std::span<const std::string_view> shader_names() {
  static const auto names = [] {
    std::vector<std::string_view> made;
    for (const auto& [name, place] : places()) made.push_back(name);
    return made;
  }();
  return names;
}

bool has_shader(std::string_view stem) {
  const auto of_stem = [&](std::string_view name) { return name.substr(0, name.find('.')) == stem; };
  return std::ranges::any_of(shader_names(), of_stem);
}

std::uint64_t shaders_checksum() {
  static const std::uint64_t sum = [] {
    std::uint64_t all = 0;
    for (const ShaderPack* pack : shader_packs()) all = crc32_z(all, pack->bytes.data(), pack->bytes.size());
    return all;
  }();
  return sum;
}

const EmbeddedShader& find_shader(std::string_view name) {
  const auto found = places().find(name);
  if (found == places().end()) {
    fail(ErrorCode::unsupported, "shader", fmt::format("expected a shader variant of the library, got {}", name),
         "a library may be built without some shaders: HALFSTEP_WITHOUT");
  }
  return expansions().get(found->first, found->second);
}

std::vector<std::string> used_shaders() {
  return expansions().names();
}

}  // namespace halfstep::vk
