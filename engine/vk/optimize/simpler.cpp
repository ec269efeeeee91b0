#include <optional>

#include "vk/optimize/fold.h"

namespace halfstep::vk::ir {
namespace {

/// A constant integer or boolean, or a vector of equal ones.
std::optional<std::uint32_t> splat(Module& module, Id id) {
  if (const auto bits = module.bits(id)) return bits;
  const Instruction* i = module.global(id);
  if (i == nullptr || i->opcode != op_constant_composite || i->operands.empty()) return std::nullopt;
  for (const Id part : i->operands) {
    if (part != i->operands[0]) return std::nullopt;
  }
  return module.bits(i->operands[0]);
}

bool commutes(std::uint32_t opcode) {
  return opcode == op_i_add || opcode == op_i_mul || opcode == op_bitwise_and || opcode == op_bitwise_or ||
         opcode == op_bitwise_xor || opcode == op_logical_and || opcode == op_logical_or || opcode == op_logical_equal;
}

enum class Becomes { nothing, other, constant };

/// What x (opcode) c gives: x, c, or nothing simpler.
Becomes with_constant(std::uint32_t opcode, std::uint32_t c, bool is_bool) {
  const std::uint32_t ones = is_bool ? 1 : 0xffffffff;
  switch (opcode) {
    case op_i_add:
    case op_i_sub:
    case op_shift_left:
    case op_shift_right_logical:
    case op_shift_right_arithmetic:
    case op_bitwise_xor:
      return c == 0 ? Becomes::other : Becomes::nothing;
    case op_i_mul:
      return c == 1 ? Becomes::other : c == 0 ? Becomes::constant : Becomes::nothing;
    case op_u_div:
    case op_s_div:
      return c == 1 ? Becomes::other : Becomes::nothing;
    case op_bitwise_and:
    case op_logical_and:
      return c == ones ? Becomes::other : c == 0 ? Becomes::constant : Becomes::nothing;
    case op_bitwise_or:
    case op_logical_or:
      return c == 0 ? Becomes::other : c == ones ? Becomes::constant : Becomes::nothing;
    case op_logical_equal:
      return c == 1 ? Becomes::other : Becomes::nothing;
    case op_logical_not_equal:
      return c == 0 ? Becomes::other : Becomes::nothing;
    default:
      return Becomes::nothing;
  }
}

}  // namespace

Id simpler(Module& module, const Instruction& i) {
  const std::uint32_t kind = module.kind(i.type);
  const bool is_bool =
      kind == op_type_bool || (kind == op_type_vector && module.kind(module.part(i.type)) == op_type_bool);
  const bool is_int = module.is_int32(i.type) || (kind == op_type_vector && module.is_int32(module.part(i.type)));
  if (i.operands.size() != 2 || !(is_bool || is_int)) return 0;
  for (const std::size_t at : {std::size_t{1}, std::size_t{0}}) {
    if (at == 0 && !commutes(i.opcode)) break;
    const auto c = splat(module, i.operands[at]);
    if (!c) continue;
    const bool one = *c == 1 && (i.opcode == op_u_mod || i.opcode == op_s_mod || i.opcode == op_s_rem);
    if (one && module.is_int32(i.type)) return module.constant(i.type, 0);
    const Becomes what = with_constant(i.opcode, *c, is_bool);
    if (what == Becomes::other) return i.operands[1 - at];
    if (what == Becomes::constant) return i.operands[at];
  }
  return 0;
}

}  // namespace halfstep::vk::ir
