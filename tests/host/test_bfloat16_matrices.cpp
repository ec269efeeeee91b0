#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "vk/optimize/module.h"
#include "vk/optimize/specialized.h"
#include "vk/shader/bfloat16_matrices.h"
#include "vk/shader/half_conversions.h"
#include "vk/shader/shaders.h"

namespace halfstep {

TEST_CASE("a kernel for matrices of f16 is one for bf16 when the type of their elements is changed") {
  std::size_t checked = 0;
  for (const std::string_view name : vk::shader_names()) {
    if (!name.starts_with("gemm_cooperative.") || !name.ends_with(".f32")) continue;
    for (const std::uint32_t transposes : {0U, 1U}) {
      CAPTURE(name);
      vk::Constants constants{{0, 128}, {7, 16}, {8, 16}, {9, 16}, {10, transposes}, {11, 64}, {103, 1}, {104, 1}};
      for (std::uint32_t i = 1; i < 7; ++i) constants[i] = 0;
      for (std::uint32_t i = 32; i < 64; ++i) constants[i] = 0;
      const std::vector<std::uint32_t> specialized = vk::specialized(vk::find_shader(name).words, constants);
      CHECK(vk::with_half_conversions(specialized) == specialized);  // it rounds nothing to f16
      const std::vector<std::uint32_t> words = vk::with_bfloat16_matrices(specialized);
      const auto module = vk::ir::read(words);
      REQUIRE(module);
      std::set<std::uint32_t> elements;
      std::size_t matrices = 0;
      for (const vk::ir::Instruction& global : module->globals()) {
        const bool narrow = global.opcode == vk::op_type_float && global.operands[0] == 16;
        if (narrow) {
          elements.insert(global.result);
          CHECK(global.operands == std::vector<std::uint32_t>{16, 0});  // BFloat16KHR
        }
        const bool matrix = global.opcode == vk::op_type_cooperative_matrix;
        matrices += matrix ? 1 : 0;
        const bool vector = global.opcode == vk::op_type_vector || global.opcode == vk::op_type_array;
        CHECK_FALSE((vector && elements.contains(global.operands[0])));
        CHECK_FALSE(elements.contains(global.type));
      }
      CHECK(elements.size() == 1);
      CHECK(matrices == 3);
      ++checked;
    }
  }
  CHECK(checked == 14);
}

}  // namespace halfstep
