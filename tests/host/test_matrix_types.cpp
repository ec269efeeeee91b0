#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "vk/optimize/module.h"
#include "vk/optimize/specialized.h"
#include "vk/shader/half_conversions.h"
#include "vk/shader/matrix_types.h"
#include "vk/shader/shaders.h"

namespace halfstep {

TEST_CASE("a kernel for matrices of f16 is one for bf16, and for 8 bits, when the type of their elements is changed") {
  struct Type {
    plan::MatrixType type;
    std::uint32_t constant;
    std::vector<std::uint32_t> bits_and_encoding;
  };
  const Type types[] = {{plan::MatrixType::bfloat16, 104, {16, 0}},   // BFloat16KHR
                        {plan::MatrixType::float8, 105, {8, 4214}}};  // Float8E4M3EXT
  std::size_t checked = 0;
  for (const std::string_view name : vk::shader_names()) {
    if (!name.starts_with("gemm_cooperative.") || !name.ends_with(".f32")) continue;
    for (const Type& type : types) {
      for (const std::uint32_t transposes : {0U, 1U}) {
        CAPTURE(name);
        vk::Constants constants{{0, 128}, {7, 16}, {8, 16}, {9, 16}, {10, transposes}, {11, 64}, {103, 1}};
        constants[type.constant] = 1;
        for (std::uint32_t i = 1; i < 7; ++i) constants[i] = 0;
        for (std::uint32_t i = 32; i < 64; ++i) constants[i] = 0;
        const std::vector<std::uint32_t> specialized = vk::specialized(vk::find_shader(name).words, constants);
        // Results may be rounded to f16 in the same kernel.
        const auto module = vk::ir::read(vk::with_matrices_of(type.type, vk::with_half_conversions(specialized)));
        REQUIRE(module);
        std::uint32_t element = 0;
        std::size_t matrices = 0;
        std::size_t factors = 0;
        for (const vk::ir::Instruction& global : module->globals()) {
          if (global.opcode == vk::op_type_float && global.operands == type.bits_and_encoding) element = global.result;
          const bool matrix = global.opcode == vk::op_type_cooperative_matrix;
          matrices += matrix ? 1U : 0U;
          factors += matrix && element != 0 && global.operands[0] == element ? 1U : 0U;
          const bool vector = global.opcode == vk::op_type_vector || global.opcode == vk::op_type_array;
          CHECK_FALSE((element != 0 && vector && global.operands[0] == element));
        }
        CHECK(matrices == 3);
        CHECK(factors == 2);
        ++checked;
      }
    }
  }
  CHECK(checked == 28);
}

}  // namespace halfstep
