#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "host/capable.h"
#include "vk/device/float_controls.h"
#include "vk/shader/half_conversions.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"

using namespace halfstep;

namespace {

/// Every execution mode of SPV_KHR_float_controls in a shader, as {mode, width}.
std::vector<std::pair<std::uint32_t, std::uint32_t>> float_modes(std::span<const std::uint32_t> words) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> modes;
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    const bool is_float_mode = i.operand(2) >= 4459 && i.operand(2) <= 4463;
    if (i.opcode == vk::op_execution_mode && is_float_mode) modes.emplace_back(i.operand(2), i.operand(3));
  });
  return modes;
}

/// The position of an instruction's section in SPIR-V's order, for sections before the types.
int section(std::uint32_t opcode) {
  switch (opcode) {
    case vk::op_capability:
      return 0;
    case vk::op_extension:
      return 1;
    case 11:  // OpExtInstImport
      return 2;
    case 14:  // OpMemoryModel
      return 3;
    case vk::op_entry_point:
      return 4;
    case vk::op_execution_mode:
      return 5;
    default:
      return 6;
  }
}

bool sections_in_order(std::span<const std::uint32_t> words) {
  int now = 0;
  bool ordered = true;
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    ordered = ordered && section(i.opcode) >= now;
    now = section(i.opcode);
  });
  return ordered;
}

}  // namespace

TEST_CASE("float controls: every shader gets the modes of the widths it has, in the right place") {
  const vk::Capabilities c = capable();
  bool met_float16 = false;
  for (const std::string_view name : vk::shader_names()) {
    const vk::EmbeddedShader& shader = vk::find_shader(name);
    CAPTURE(shader.name);
    const vk::ShaderFacts facts = vk::shader_facts(shader.words, {});
    REQUIRE(facts.entry_point != 0);
    const std::vector<std::uint32_t> patched = vk::with_float_controls(shader.words, c);
    const auto modes = float_modes(patched);
    const std::size_t widths = (facts.has_float16 ? 1u : 0u) + (facts.has_float32 ? 1u : 0u);
    const bool only_unpacks = facts.unpacks_halves && !facts.has_float16;
    CHECK(modes.size() == 3 * widths + (only_unpacks ? 1u : 0u));
    for (const auto& [mode, width] : modes) {
      CHECK((width == 16 ? facts.has_float16 || (only_unpacks && mode == 4459) : facts.has_float32));
    }
    CHECK(sections_in_order(patched));
    CHECK_FALSE(vk::has_float_controls(shader.words));
    CHECK(vk::has_float_controls(patched) != modes.empty());
    CHECK(vk::with_float_controls(patched, c) == patched);  // what asks for modes itself keeps them
    // 3 capabilities of 2 words, an extension of 7, and modes of 4.
    CHECK(patched.size() == shader.words.size() + (widths != 0 ? 13 + 4 * modes.size() : 0));
    met_float16 |= facts.has_float16;
  }
  CHECK(met_float16);
}

TEST_CASE("float controls: a device that cannot tell widths apart gets a mode for all widths or for none") {
  const vk::EmbeddedShader& both = vk::find_shader("pointwise.f16");
  vk::Capabilities c = capable();
  c.float16.preserves_denormals = false;
  c.float32.rounds_to_nearest_even = false;
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> apart{{4459, 32}, {4462, 16}, {4461, 16}, {4461, 32}};
  CHECK(float_modes(vk::with_float_controls(both.words, c)) == apart);
  c.denormals_independent = c.rounding_independent = false;
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> together{{4461, 16}, {4461, 32}};
  CHECK(float_modes(vk::with_float_controls(both.words, c)) == together);
  c.float_controls = false;
  CHECK(std::ranges::equal(vk::with_float_controls(both.words, c), both.words));
}

TEST_CASE("float controls: what unpacks f16 from words keeps its subnormals, where the device can") {
  const auto unpacks = [](std::string_view name) {
    const vk::ShaderFacts facts = vk::shader_facts(vk::find_shader(name).words, {});
    return facts.unpacks_halves && !facts.has_float16;
  };
  const std::span<const std::string_view> names = vk::shader_names();
  const auto found = std::ranges::find_if(names, unpacks);
  REQUIRE(found != names.end());
  const vk::EmbeddedShader& shader = vk::find_shader(*found);
  using Modes = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  vk::Capabilities c = capable();
  const std::vector<std::uint32_t> controlled = vk::with_float_controls(shader.words, c);
  CHECK(float_modes(controlled) == Modes{{4459, 16}, {4459, 32}, {4462, 32}, {4461, 32}});
  vk::check_spirv(controlled, shader.name);
  c.denormals_independent = false;
  CHECK(float_modes(vk::with_float_controls(shader.words, c)) == Modes{{4459, 16}, {4459, 32}, {4462, 32}, {4461, 32}});
  c.float16.preserves_denormals = false;
  CHECK(float_modes(vk::with_float_controls(shader.words, c)) == Modes{{4459, 32}, {4462, 32}, {4461, 32}});
}

TEST_CASE("float controls: what rounds to f16 by the device has its modes, where the device promises them") {
  const vk::EmbeddedShader& shader = vk::find_shader("rounding_check");
  const vk::ShaderFacts facts = vk::shader_facts(shader.words, {});
  REQUIRE_FALSE(facts.has_float16);
  vk::Capabilities c = capable();
  CHECK(float_modes(vk::with_float_controls(shader.words, c)).size() == (facts.unpacks_halves ? 4U : 3U));
  const std::vector<std::uint32_t> converting = vk::with_half_conversions(shader.words);
  vk::check_spirv(converting, shader.name);
  CHECK(vk::shader_facts(converting, {}).needs_float16);
  CHECK(float_modes(vk::with_float_controls(converting, c)).size() == 6);
  const vk::EmbeddedShader& other = vk::find_shader("copy");
  CHECK(std::ranges::equal(vk::with_half_conversions(other.words), other.words));
}

TEST_CASE("float controls: a device promises how it rounds to f16 if it can in every shader") {
  vk::Capabilities c = capable();
  CHECK(vk::promises_rounding(c));
  CHECK(vk::target(c, vk::settings({})).float16.rounding_is_promised);
  CHECK_FALSE(vk::target(c, vk::settings({})).float16.rounded_by_driver);
  c.rounding_independent = false;
  CHECK(vk::promises_rounding(c));
  c.float32.rounds_to_nearest_even = false;
  CHECK_FALSE(vk::promises_rounding(c));
  for (bool vk::FloatControls::*const promise :
       {&vk::FloatControls::preserves_denormals, &vk::FloatControls::rounds_to_nearest_even}) {
    c = capable();
    c.float16.*promise = false;
    CHECK_FALSE(vk::promises_rounding(c));
  }
  for (bool vk::Capabilities::*const needed :
       {&vk::Capabilities::float_controls, &vk::Capabilities::float16_arithmetic}) {
    c = capable();
    c.*needed = false;
    CHECK_FALSE(vk::promises_rounding(c));
  }
  c = capable();
  c.type = VK_PHYSICAL_DEVICE_TYPE_CPU;  // of which integers were measured to be as fast, or the driver to be right
  CHECK_FALSE(vk::target(c, vk::settings({})).float16.rounding_is_promised);
}
