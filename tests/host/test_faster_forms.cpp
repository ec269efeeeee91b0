// Kernels in the forms that a driver executes faster: numbers of invocations from those of subgroups, quads as pairs.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vk/shader/first_group.h"
#include "vk/shader/pair_access.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/subgroup_ids.h"
#include "vk/shader/validate_spirv.h"
#include "vk/shader/variable_bytes.h"

namespace halfstep {
namespace {

using Words = std::vector<std::uint32_t>;

std::size_t count(std::span<const std::uint32_t> words, vk::Op opcode) {
  std::size_t found = 0;
  vk::for_each_instruction(words, [&](const vk::Instruction& i) { found += i.opcode == opcode ? 1 : 0; });
  return found;
}

/// How often a kernel loads a variable that is this built-in, as a whole or by axes.
std::size_t uses_of(std::span<const std::uint32_t> words, std::uint32_t built_in) {
  std::uint32_t variable = 0;
  std::size_t found = 0;
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    const bool says = i.opcode == vk::op_decorate && i.operand(2) == vk::decoration_built_in;
    if (says && i.operand(3) == built_in) variable = i.operand(1);
    const bool uses = i.opcode == vk::op_load || i.opcode == vk::op_access_chain;
    if (variable != 0 && uses && i.operand(3) == variable) ++found;
  });
  return found;
}

constexpr std::uint32_t local_invocation_id = 27;
constexpr std::uint32_t subgroup_id = 40;

}  // namespace

TEST_CASE("every kernel can have its faster forms, one after the other, and is valid then") {
  std::size_t in_subgroups = 0;
  std::size_t in_pairs = 0;
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const std::span<const std::uint32_t> words = vk::find_shader(name).words;
    const Words by_subgroups = vk::with_subgroup_ids(words);
    const Words made = vk::with_pair_access(by_subgroups);
    CHECK(uses_of(made, local_invocation_id) == 0);
    const bool numbered = uses_of(words, local_invocation_id) > 0 || uses_of(words, subgroup_id) > 0;
    CHECK((uses_of(made, subgroup_id) > 0) == numbered);
    CHECK(count(made, vk::op_store) == count(words, vk::op_store));
    if (uses_of(words, local_invocation_id) > 0) ++in_subgroups;
    if (count(made, vk::op_bitcast) > count(words, vk::op_bitcast)) ++in_pairs;
    if (name.find("cooperative") != std::string_view::npos) continue;  // which old validators do not know
    // The last form has every instruction of those before, and validating takes most of this test's time.
    const auto pushed = static_cast<std::uint32_t>(vk::variable_bytes(made, {}).pushed);
    vk::check_spirv(pushed != 0 ? vk::with_first_group(made, pushed) : made, name);
  }
  CHECK(in_subgroups > 300);
  CHECK(in_pairs > 300);
}

TEST_CASE("a kernel that reads no number of its invocations stays as it is") {
  const std::span<const std::uint32_t> words = vk::find_shader("gemm_uniform.row_row.f32").words;
  CHECK(vk::with_subgroup_ids(words) == Words(words.begin(), words.end()));
}

}  // namespace halfstep
