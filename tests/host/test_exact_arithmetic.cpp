#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vk/shader/exact_arithmetic.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"

namespace halfstep {
namespace {

/// Whether reproducible() targets use the variant: no 16-bit elements, no subgroups, no matrix units.
bool is_used(std::string_view name) {
  return std::ranges::none_of(
      std::vector<std::string_view>{".f16", "lanes", "thin", "cooperative", "gemm_half", "gemm_dots"},
      [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace

TEST_CASE(
    "every kernel has a reproducible form, which is valid and has no instruction that drivers round their own way") {
  std::size_t checked = 0;
  for (const std::string_view name : vk::shader_names()) {
    if (!is_used(name)) continue;
    CAPTURE(name);
    const std::vector<std::uint32_t> words = vk::with_exact_arithmetic(vk::find_shader(name).words, name);
    vk::check_spirv(words, name);
    // OpFDiv, OpFMod, OpDot; and of GLSL.std.450 exp, log, sqrt, inversesqrt, min, max, clamp, mix, fma,
    // packHalf2x16, unpackHalf2x16.
    const std::set<std::uint32_t> opcodes{136, 141, 148};
    const std::set<std::uint32_t> of_glsl{27, 28, 31, 32, 37, 40, 43, 46, 50, 58, 62};
    vk::for_each_instruction(words, [&](const vk::Instruction& i) {
      CHECK_FALSE(opcodes.contains(i.opcode));
      if (i.opcode == 12) CHECK_FALSE(of_glsl.contains(i.operand(4)));
    });
    ++checked;
  }
  CHECK(checked > 200);
}

TEST_CASE("every kernel has a form that unpacks f16 by integers, and is else as it was") {
  std::size_t changed = 0;
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const std::span<const std::uint32_t> before = vk::find_shader(name).words;
    const std::vector<std::uint32_t> after = vk::with_exact_unpacking(before);
    const vk::ShaderFacts facts = vk::shader_facts(before, {});
    CHECK(std::ranges::equal(before, after) == !facts.unpacks_halves);
    if (!facts.unpacks_halves) continue;
    const bool matrices = name.find("cooperative") != std::string_view::npos;  // which the validator may not know
    if (!matrices) vk::check_spirv(after, name);
    CHECK_FALSE(vk::shader_facts(after, {}).unpacks_halves);
    ++changed;
  }
  CHECK(changed > 100);
}

TEST_CASE("a kernel without a reproducible form is refused by name") {
  const auto half =
      std::ranges::find_if(vk::shader_names(), [](std::string_view name) { return name.ends_with(".f16"); });
  REQUIRE(half != vk::shader_names().end());
  try {
    vk::with_exact_arithmetic(vk::find_shader(*half).words, *half);
    FAIL("expected an Error");
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find("[precision] expected kernels of sums and products of f32 for Precision::reproducible, got floats "
                    "of 16 bits in " +
                    std::string(*half)) == 0);
  }
}

}  // namespace halfstep
