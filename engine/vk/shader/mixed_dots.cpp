#include "vk/shader/mixed_dots.h"

#include <array>
#include <map>

#include "vk/shader/additions.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

/// The dot products of a module whose factors are two unpacked words, by their ids.
struct Dots {
  explicit Dots(std::span<const std::uint32_t> words) {
    std::uint32_t glsl = 0;
    for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode == op_ext_inst_import && i.operand(2) == glsl_begins) glsl = i.operand(1);
      if (i.opcode == op_ext_inst && i.operand(3) == glsl && i.operand(4) == glsl_unpack_half_2x16) {
        unpacked[i.operand(2)] = i.operand(5);
      }
      if (i.opcode == op_dot && unpacked.contains(i.operand(3)) && unpacked.contains(i.operand(4))) {
        factors[i.operand(2)] = {i.operand(3), i.operand(4)};
      }
    });
  }

  std::map<std::uint32_t, std::uint32_t> unpacked;  ///< of which word
  std::map<std::uint32_t, std::array<std::uint32_t, 2>> factors;
};

}  // namespace

std::vector<std::uint32_t> with_mixed_dots(std::span<const std::uint32_t> words) {
  const Dots dots(words);
  if (dots.factors.empty()) return {words.begin(), words.end()};
  Additions added(words);
  const std::uint32_t half = added.type({op_type_float, 16});
  const std::uint32_t pair = added.type({op_type_vector, half, 2});
  std::map<std::uint32_t, std::uint32_t> pairs;  // of what is unpacked
  std::vector<std::uint32_t> body;
  bool in_capabilities = true;
  for_each_instruction(words, [&](const Instruction& i) {
    if (in_capabilities && i.opcode != op_capability) {
      in_capabilities = false;
      if (!added.module().float16_arithmetic) append(body, op_capability, {capability_float16});
      append(body, op_capability, {capability_mixed_dots});
      append_extension(body, "SPV_VALVE_mixed_float_dot_product");
    }
    if (i.opcode == op_f_add) {
      const bool first = dots.factors.contains(i.operand(3));
      const auto dot = dots.factors.find(i.operand(first ? 3 : 4));
      if (dot != dots.factors.end()) {
        const auto [a, b] = dot->second;
        const std::uint32_t sum = i.operand(first ? 4 : 3);
        append(body, op_f_dot2_mix_acc32, {i.operand(1), i.operand(2), pairs.at(a), pairs.at(b), sum});
        return;
      }
    }
    body.insert(body.end(), i.words.begin(), i.words.end());
    const auto word = i.opcode == op_ext_inst ? dots.unpacked.find(i.operand(2)) : dots.unpacked.end();
    if (word == dots.unpacked.end()) return;
    const std::uint32_t bits = pairs[word->first] = added.next_id();
    append(body, op_bitcast, {pair, bits, word->second});
  });
  return added.finish(body);
}

}  // namespace halfstep::vk
