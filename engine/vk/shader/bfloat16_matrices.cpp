#include "vk/shader/bfloat16_matrices.h"

#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t encoding_bfloat16 = 0;

}  // namespace

std::vector<std::uint32_t> with_bfloat16_matrices(std::span<const std::uint32_t> words) {
  std::vector<std::uint32_t> result(words.begin(), words.begin() + spirv_header_words);
  bool in_capabilities = true;
  for_each_instruction(words, [&](const Instruction& i) {
    if (in_capabilities && i.opcode != op_capability) {
      in_capabilities = false;
      append(result, op_capability, {capability_bfloat16_type});
      append(result, op_capability, {capability_bfloat16_matrices});
      append_extension(result, "SPV_KHR_bfloat16");
    }
    if (i.opcode == op_type_float && i.operand(2) == 16) {
      append(result, op_type_float, {i.operand(1), 16, encoding_bfloat16});
    } else {
      result.insert(result.end(), i.words.begin(), i.words.end());
    }
  });
  return result;
}

}  // namespace halfstep::vk
