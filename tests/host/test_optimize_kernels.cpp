// The specializer on the kernels of the library. Device tests run those of real programs: where a driver is validated,
// the layer checks every one of them.
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "plan/expression.h"
#include "spirv_text.h"
#include "vk/optimize/flow.h"
#include "vk/optimize/module.h"
#include "vk/optimize/specialized.h"
#include "vk/shader/shaders.h"
#include "vk/shader/validate_spirv.h"

using namespace halfstep;

namespace {

/// Argument 1, which repeats by row, is added to argument 0 or the kernel's value, of that the square root is taken,
/// and what is not above 0 becomes 0.
vk::Constants some_constants() {
  plan::Expression expression;
  expression.reads = {plan::Reading{}, plan::Reading{}};
  expression.reads[1].walk = plan::Walk::columns;
  const plan::Register sum = expression.add({plan::Op::add, 0, 1, 0});
  const plan::Register root = expression.add({plan::Op::sqrt, sum, 0, 0});
  expression.value = expression.add({plan::Op::relu, root, 0, 0});
  vk::Constants constants{{0, 64}};
  const std::vector<std::uint32_t> words = plan::expression_constants(expression, {false, false, false});
  for (std::uint32_t i = 0; i < words.size(); ++i) constants[plan::first_expression_constant + i] = words[i];
  return constants;
}

bool is_valid(std::span<const std::uint32_t> words) {
  try {
    vk::check_spirv(words, "kernel");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The number of loops that the shader asks to write out, but for those with loops in them or a `continue`.
std::size_t loops_left(std::span<const std::uint32_t> words) {
  const std::optional<vk::ir::Module> module = vk::ir::read(words);
  REQUIRE(module);
  std::size_t left = 0;
  for (const vk::ir::Function& function : module->functions) {
    const vk::ir::Flow flow(function);
    const auto loop_of = [&](std::uint32_t b) {
      const vk::ir::Instruction* merge = function.blocks[b].merge();
      return merge != nullptr && merge->opcode == vk::op_loop_merge ? merge : nullptr;
    };
    for (const std::uint32_t header : flow.order()) {
      const vk::ir::Instruction* loop = loop_of(header);
      if (loop == nullptr || (loop->operands[2] & 1U) == 0) continue;
      const bool plain = std::ranges::none_of(flow.order(), [&](std::uint32_t b) {
        return b != header && loop_of(b) != nullptr && flow.dominates(header, b) &&
               !flow.dominates(flow.block_of(loop->operands[0]), b);
      });
      if (plain && flow.predecessors(flow.block_of(loop->operands[1])).size() == 1) ++left;
    }
  }
  return left;
}

}  // namespace

TEST_CASE("specializer: every instruction of every kernel is known, and what becomes of it is valid") {
  const vk::Constants constants = some_constants();
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const vk::EmbeddedShader& shader = vk::find_shader(name);
    const std::vector<std::uint32_t> special = vk::specialized(shader.words, constants);
    CHECK_FALSE(std::ranges::equal(special, shader.words));
    CHECK(count_of(special, "spec_constant") == 0);
    CHECK(count_of(special, "spec_constant_composite") == 0);
    CHECK(count_of(special, "function_call") == 0);
    CHECK(loops_left(special) == 0);  // plans count the rounds of the other loops only
    // A validator that is older than matrix units refuses such kernels as they come, too.
    if (!is_valid(special)) CHECK_FALSE(is_valid(shader.words));
  }
}

TEST_CASE("specializer: no interpreter is left of a kernel with an expression") {
  const vk::EmbeddedShader& pointwise = vk::find_shader("pointwise.packed");
  const std::vector<std::uint32_t> special = vk::specialized(pointwise.words, some_constants());
  CHECK(count_of(special, "phi") == 0);
  CHECK(count_of(special, "selection_merge") == 1);  // of invocations past the end
  CHECK(count_of(special, "label") == 3);
  CHECK(special.size() * 10 < pointwise.words.size());
}
