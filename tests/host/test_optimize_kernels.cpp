// The specializer on the kernels of the library. Device tests run those of real programs: where a driver is validated,
// the layer checks every one of them.
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include "plan/expression.h"
#include "spirv_text.h"
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
