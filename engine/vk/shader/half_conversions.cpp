#include "vk/shader/half_conversions.h"

#include "vk/shader/additions.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t glsl_pack_half_2x16 = 58;

}  // namespace

std::vector<std::uint32_t> with_half_conversions(std::span<const std::uint32_t> words) {
  Additions added(words);
  const std::uint32_t half = added.type({op_type_float, 16});
  const std::uint32_t pair = added.type({op_type_vector, half, 2});
  std::vector<std::uint32_t> body;
  bool in_capabilities = true;
  std::uint32_t glsl = 0;
  bool converts = false;
  for_each_instruction(words, [&](const Instruction& i) {
    if (in_capabilities && i.opcode != op_capability) {
      in_capabilities = false;
      if (!added.module().float16_arithmetic) append(body, op_capability, {capability_float16});
    }
    if (i.opcode == op_ext_inst_import && i.operand(2) == glsl_begins) glsl = i.operand(1);
    if (i.opcode == op_ext_inst && i.operand(3) == glsl && i.operand(4) == glsl_pack_half_2x16) {
      converts = true;
      const std::uint32_t converted = added.next_id();
      append(body, op_f_convert, {pair, converted, i.operand(5)});
      append(body, op_bitcast, {i.operand(1), i.operand(2), converted});
      return;
    }
    body.insert(body.end(), i.words.begin(), i.words.end());
  });
  return converts ? added.finish(body) : std::vector(words.begin(), words.end());
}

}  // namespace halfstep::vk
