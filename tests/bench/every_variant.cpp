#include "bench/every_variant.h"

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/gemm/gemm_kernels.h"
#include "vk/shader/pipelines.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"

namespace bench {
namespace {

using namespace halfstep;

/// A shader's specialization constants, as its source gives them.
std::map<std::uint32_t, std::uint32_t> default_constants(std::span<const std::uint32_t> words) {
  std::map<std::uint32_t, std::uint32_t> numbers;  // of the constants, by their ids
  std::map<std::uint32_t, std::uint32_t> values;
  vk::for_each_instruction(words, [&](const vk::Instruction& instruction) {
    if (instruction.opcode == vk::op_decorate && instruction.operand(2) == vk::decoration_spec_id)
      numbers[instruction.operand(1)] = instruction.operand(3);
    const auto number = numbers.find(instruction.operand(2));
    if (number == numbers.end()) return;
    if (instruction.opcode == vk::op_spec_constant) values[number->second] = instruction.operand(3);
    if (instruction.opcode == vk::op_spec_constant_true) values[number->second] = 1;
    if (instruction.opcode == vk::op_spec_constant_false) values[number->second] = 0;
  });
  return values;
}

/// Gives a dispatch of a kernel that computes an expression one: the sum of an argument and of what it computes.
/// Drivers take a minute to compile some that were not specialized for one.
void add_expression(plan::Dispatch& dispatch, std::span<const std::uint32_t> words) {
  const std::map<std::uint32_t, std::uint32_t> defaults = default_constants(words);
  if (!defaults.contains(plan::first_expression_constant)) return;
  plan::Expression expression{.result = 0, .reads = {plan::Reading{}}};
  expression.value = expression.add({.op = plan::Op::add, .a = 0, .b = plan::kernel_value});
  for (std::size_t i = dispatch.constants.size(); i < plan::first_expression_constant; ++i) {
    const auto found = defaults.find(static_cast<std::uint32_t>(i));
    dispatch.constants.push_back(found != defaults.end() ? found->second : 0);
  }
  const std::vector<std::uint32_t> constants =
      plan::expression_constants(expression, std::vector<bool>(dispatch.operands.size()));
  dispatch.constants.insert(dispatch.constants.end(), constants.begin(), constants.end());
  dispatch.expression = std::move(expression);
}

/// The kernels for products that the engine has on a target, by their shaders. What matrix units compute is as large as
/// the constants say: no driver compiles it in reasonable time with others.
std::multimap<std::string, ops::GemmKernel> product_kernels(const plan::Target& target) {
  std::map<std::pair<std::string, std::string>, ops::GemmKernel> found;  // by shader and name
  constexpr std::int64_t large = 4096;
  for (int operands = 0; operands <= static_cast<int>(ops::Operands::planes_row); ++operands) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const auto& [partials, float8] : {std::pair{false, false}, {true, false}, {false, true}}) {
        const ops::Problem problem{.operands = static_cast<ops::Operands>(operands),
                                   .dtype = dtype,
                                   .float16_partials = partials,
                                   .float8 = float8 && dtype == DType::f16,
                                   .rows = large,
                                   .columns = large,
                                   .k = large};
        for (const ops::GemmKernel& kernel : ops::gemm_kernels(target, problem)) {
          found.try_emplace(
              {kernel.shader, kernel.name + (kernel.matrices == plan::MatrixType::bfloat16 ? ".bf16" : "")}, kernel);
        }
      }
    }
  }
  std::multimap<std::string, ops::GemmKernel> by_shader;
  for (const auto& [key, kernel] : found) by_shader.emplace(key.first, kernel);
  return by_shader;
}

/// The specialization constants of a product that has nothing but A, B and C: see shaders/gemm/gemm.glsl.
std::vector<std::uint32_t> constants_of(const ops::GemmKernel& kernel) {
  constexpr std::uint32_t quad_elements = 4;
  std::vector<std::uint32_t> constants{kernel.local_size, 0, 0, 0, quad_elements, 0, 0};
  constants.insert(constants.end(), kernel.constants.begin(), kernel.constants.end());
  return constants;
}

bool is_for_software_drivers(std::string_view shader) {
  const bool attention_by_rows = shader.starts_with("attention.") && shader.find(".rows") != shader.npos;
  return attention_by_rows || shader.ends_with("_texels") || shader.starts_with("gemm_runs.");
}

/// Whether a variant's name says which operands it multiplies: "gemm_uniform.row_row.f32".
bool is_product(std::string_view shader) {
  return shader.starts_with("gemm") && (shader.find("_row.") != shader.npos || shader.find("_col.") != shader.npos);
}

}  // namespace

plan::Program every_variant(const plan::Target& target) {
  plan::Program program;
  const std::multimap<std::string, ops::GemmKernel> products = product_kernels(target);
  for (const std::string_view name : vk::shader_names()) {
    if (is_for_software_drivers(name)) continue;
    if (target.matrix_shapes.empty() && name.find("_cooperative") != std::string_view::npos) continue;
    const std::span<const std::uint32_t> words = vk::find_shader(name).words;
    plan::Dispatch dispatch;
    dispatch.label = dispatch.shader = name;
    dispatch.push.resize(128);
    dispatch.operands.resize(vk::shader_facts(words, {}).bindings, {0, plan::Access::read});
    const auto [first, last] = products.equal_range(dispatch.shader);
    for (auto each = first; each != last; ++each) {
      plan::Dispatch& product = program.dispatches.emplace_back(dispatch);
      product.label = each->second.name;
      product.constants = constants_of(each->second);
      product.matrices = each->second.matrices;
      add_expression(product, words);
    }
    if (first != last || is_product(name)) continue;
    add_expression(dispatch, words);
    program.dispatches.push_back(std::move(dispatch));
  }
  return program;
}

}  // namespace bench
