#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vk/shader/first_group.h"
#include "vk/shader/shaders.h"
#include "vk/shader/validate_spirv.h"
#include "vk/shader/variable_bytes.h"

namespace halfstep {

TEST_CASE("every kernel can count its workgroups from a number that is pushed, and stays valid") {
  std::size_t checked = 0;
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const std::span<const std::uint32_t> words = vk::find_shader(name).words;
    const auto pushed = static_cast<std::uint32_t>(vk::variable_bytes(words, {}).pushed);
    if (pushed == 0) continue;
    const std::vector<std::uint32_t> counting = vk::with_first_group(words, pushed);
    const bool of_matrices = name.find("cooperative") != std::string_view::npos;  // which old validators do not know
    if (!of_matrices) vk::check_spirv(counting, name);
    CHECK(vk::variable_bytes(counting, {}).pushed == pushed + 4);
    ++checked;
  }
  CHECK(checked > 500);
}

}  // namespace halfstep
