#include "vk/shader/matrix_types.h"

#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

/// What a shader declares for a type.
struct Declared {
  std::uint32_t capability;
  std::uint32_t matrix_capability;
  std::string_view extension;
  std::uint32_t bits;
  std::uint32_t encoding;
};

constexpr Declared bfloat16{capability_bfloat16_type, capability_bfloat16_matrices, "SPV_KHR_bfloat16", 16, 0};
constexpr Declared float8{capability_float8_type, capability_float8_matrices, "SPV_EXT_float8", 8, 4214};

}  // namespace

std::vector<std::uint32_t> with_matrices_of(plan::MatrixType type, std::span<const std::uint32_t> words) {
  if (type == plan::MatrixType::float16) return {words.begin(), words.end()};
  const Declared& made = type == plan::MatrixType::bfloat16 ? bfloat16 : float8;
  std::vector<std::uint32_t> result(words.begin(), words.begin() + spirv_header_words);
  const std::uint32_t element = result[bound_word]++;  // the new type
  std::uint32_t float16 = 0;
  bool in_capabilities = true;
  for_each_instruction(words, [&](const Instruction& i) {
    if (in_capabilities && i.opcode != op_capability) {
      in_capabilities = false;
      append(result, op_capability, {made.capability});
      append(result, op_capability, {made.matrix_capability});
      append_extension(result, made.extension);
    }
    const std::size_t at = result.size();
    result.insert(result.end(), i.words.begin(), i.words.end());
    if (i.opcode == op_type_float && i.operand(2) == 16) {
      float16 = i.operand(1);
      append(result, op_type_float, {element, made.bits, made.encoding});
    }
    if (i.opcode == op_type_cooperative_matrix && i.operand(2) == float16) result[at + 2] = element;
  });
  return result;
}

}  // namespace halfstep::vk
