#include "vk/optimize/fold.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

namespace halfstep::vk::ir {
namespace {

using Bits = std::optional<std::uint32_t>;

constexpr std::uint32_t most_negative = 0x80000000;

std::int32_t as_signed(std::uint32_t bits) {
  return static_cast<std::int32_t>(bits);
}

/// Quotients and remainders; none by 0, or of what overflows.
Bits divided(std::uint32_t opcode, std::uint32_t a, std::uint32_t b) {
  const bool is_signed = opcode == op_s_div || opcode == op_s_rem || opcode == op_s_mod;
  if (b == 0 || (is_signed && a == most_negative && as_signed(b) == -1)) return std::nullopt;
  if (opcode == op_u_div) return a / b;
  if (opcode == op_u_mod) return a % b;
  if (opcode == op_s_div) return static_cast<std::uint32_t>(as_signed(a) / as_signed(b));
  const std::int32_t remainder = as_signed(a) % as_signed(b);
  if (opcode == op_s_rem) return static_cast<std::uint32_t>(remainder);
  const bool other_sign = remainder != 0 && (remainder < 0) != (as_signed(b) < 0);  // OpSMod has the sign of b
  return static_cast<std::uint32_t>(other_sign ? remainder + as_signed(b) : remainder);
}

Bits shifted(std::uint32_t opcode, std::uint32_t a, std::uint32_t b) {
  if (b >= 32) return std::nullopt;
  if (opcode == op_shift_left) return a << b;
  if (opcode == op_shift_right_logical) return a >> b;
  return static_cast<std::uint32_t>(as_signed(a) >> b);
}

Bits compared(std::uint32_t opcode, std::uint32_t a, std::uint32_t b) {
  switch (opcode) {
    case op_i_equal:
    case op_logical_equal:
      return a == b;
    case op_i_not_equal:
    case op_logical_not_equal:
      return a != b;
    case op_u_greater_than:
      return a > b;
    case op_u_greater_than_equal:
      return a >= b;
    case op_u_less_than:
      return a < b;
    case op_u_less_than_equal:
      return a <= b;
    case op_s_greater_than:
      return as_signed(a) > as_signed(b);
    case op_s_greater_than_equal:
      return as_signed(a) >= as_signed(b);
    case op_s_less_than:
      return as_signed(a) < as_signed(b);
    case op_s_less_than_equal:
      return as_signed(a) <= as_signed(b);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::uint32_t> integer_result(std::uint32_t opcode, std::uint32_t a, std::uint32_t b) {
  switch (opcode) {
    case op_i_add:
      return a + b;
    case op_i_sub:
      return a - b;
    case op_i_mul:
      return a * b;
    case op_u_div:
    case op_s_div:
    case op_u_mod:
    case op_s_rem:
    case op_s_mod:
      return divided(opcode, a, b);
    case op_shift_left:
    case op_shift_right_logical:
    case op_shift_right_arithmetic:
      return shifted(opcode, a, b);
    case op_bitwise_or:
    case op_logical_or:
      return a | b;
    case op_bitwise_xor:
      return a ^ b;
    case op_bitwise_and:
    case op_logical_and:
      return a & b;
    default:
      return compared(opcode, a, b);
  }
}

namespace {

/// Of floats that are 0 or normal, which all devices take as they are. NaN does not occur.
Bits compared_floats(std::uint32_t opcode, std::uint32_t a, std::uint32_t b) {
  constexpr std::uint32_t smallest_normal = 0x00800000;
  constexpr std::uint32_t infinity = 0x7f800000;
  for (const std::uint32_t bits : {a << 1 >> 1, b << 1 >> 1}) {
    if (bits != 0 && (bits < smallest_normal || bits >= infinity)) return std::nullopt;
  }
  const auto x = std::bit_cast<float>(a);
  const auto y = std::bit_cast<float>(b);
  if (opcode == op_f_ord_equal || opcode == op_f_unord_equal) return x == y;
  if (opcode == op_f_ord_not_equal || opcode == op_f_unord_not_equal) return x != y;
  if (opcode == op_f_ord_less_than || opcode == op_f_unord_less_than) return x < y;
  if (opcode == op_f_ord_greater_than || opcode == op_f_unord_greater_than) return x > y;
  if (opcode == op_f_ord_less_than_equal || opcode == op_f_unord_less_than_equal) return x <= y;
  if (opcode == op_f_ord_greater_than_equal || opcode == op_f_unord_greater_than_equal) return x >= y;
  return std::nullopt;
}

Bits unary(std::uint32_t opcode, std::uint32_t a) {
  switch (opcode) {
    case op_s_negate:
      return 0 - a;
    case op_bitwise_not:
      return ~a;
    case op_logical_not:
      return a ^ 1;
    case op_bitcast:
      return a;
    default:
      return std::nullopt;
  }
}

/// Extremes of GLSL.std.450.
Bits extreme(std::uint32_t number, std::uint32_t a, std::uint32_t b) {
  enum : std::uint32_t { u_min = 38, s_min = 39, u_max = 41, s_max = 42 };
  if (number == u_min) return std::min(a, b);
  if (number == u_max) return std::max(a, b);
  if (number == s_min) return as_signed(a) < as_signed(b) ? a : b;
  if (number == s_max) return as_signed(a) < as_signed(b) ? b : a;
  return std::nullopt;
}

class Folder {
 public:
  Folder(Module& module, const Instruction& i) : module_(module), i_(i) {}

  Id folded() {
    switch (i_.opcode) {
      case op_composite_extract:
        return extracted();
      case op_composite_construct:
        return constructed();
      case op_vector_shuffle:
        return shuffled();
      case op_composite_insert:
        return inserted();
      case op_select:
        return selected();
      case op_copy_object:
        return i_.operands[0];
      case op_any:
      case op_all:
        return any_or_all();
      default:
        return by_parts();
    }
  }

 private:
  Id extracted() {
    Id constant = i_.operands[0];
    for (std::size_t at = 1; at < i_.operands.size() && constant != 0; ++at) {
      constant = constituent(module_, constant, i_.operands[at]);
    }
    return constant;
  }

  Id constructed() {
    const std::optional<std::uint32_t> count = module_.parts(i_.type);
    if (!count) return 0;
    std::vector<Id> parts;
    for (const Id operand : i_.operands) {
      const Id type = module_.global(operand)->type;
      const bool is_vector = module_.kind(i_.type) == op_type_vector && module_.kind(type) == op_type_vector;
      if (!is_vector) {
        parts.push_back(operand);
        continue;
      }
      for (std::uint32_t at = 0; at < module_.parts(type); ++at) parts.push_back(constituent(module_, operand, at));
    }
    return composite(parts);
  }

  Id shuffled() {
    const std::uint32_t first = module_.parts(module_.global(i_.operands[0])->type).value_or(0);
    std::vector<Id> parts;
    for (std::size_t at = 2; at < i_.operands.size(); ++at) {
      const std::uint32_t component = i_.operands[at];
      parts.push_back(component < first ? constituent(module_, i_.operands[0], component)
                                        : constituent(module_, i_.operands[1], component - first));
    }
    return composite(parts);
  }

  Id inserted() {
    if (i_.operands.size() != 3) return 0;
    const std::uint32_t count = module_.parts(i_.type).value_or(0);
    if (count > most_parts || i_.operands[2] >= count) return 0;
    std::vector<Id> parts;
    for (std::uint32_t at = 0; at < count; ++at) {
      parts.push_back(at == i_.operands[2] ? i_.operands[0] : constituent(module_, i_.operands[1], at));
    }
    return composite(parts);
  }

  Id selected() {
    const Bits condition = module_.bits(i_.operands[0]);
    if (condition) return i_.operands[*condition != 0 ? 1 : 2];
    return module_.kind(i_.type) == op_type_vector ? by_parts() : 0;
  }

  Id any_or_all() {
    bool any = false;
    bool all = true;
    for (std::uint32_t at = 0; at < module_.parts(module_.global(i_.operands[0])->type).value_or(0); ++at) {
      const Bits bits = module_.bits(constituent(module_, i_.operands[0], at));
      if (!bits) return 0;
      any |= *bits != 0;
      all &= *bits != 0;
    }
    return module_.constant(i_.type, (i_.opcode == op_any ? any : all) ? 1 : 0);
  }

  /// Arithmetic on numbers, or part by part on vectors.
  Id by_parts() {
    const std::size_t first = i_.opcode == op_ext_inst ? 2 : 0;
    const std::span operands = std::span(i_.operands).subspan(std::min(first, i_.operands.size()));
    if (operands.empty() || operands.size() > 3) return 0;
    if (module_.kind(i_.type) != op_type_vector) return scalar(i_.type, operands);
    std::vector<Id> parts;
    for (std::uint32_t at = 0; at < module_.parts(i_.type); ++at) {
      std::vector<Id> of_part;
      for (const Id operand : operands) of_part.push_back(constituent(module_, operand, at));
      parts.push_back(scalar(module_.part(i_.type), of_part));
    }
    return composite(parts);
  }

  Id scalar(Id type, std::span<const Id> operands) {
    std::vector<std::uint32_t> bits;
    bool floats = false;
    for (const Id operand : operands) {
      const Bits known = operand == 0 ? std::nullopt : module_.bits(operand);
      if (!known) return 0;
      floats |= module_.kind(module_.global(operand)->type) == op_type_float;
      bits.push_back(*known);
    }
    if (i_.opcode == op_select) return operands.size() == 3 ? operands[bits[0] != 0 ? 1 : 2] : 0;
    const bool bitcast = i_.opcode == op_bitcast && module_.kind(type) == op_type_float && is_32_bits(type);
    if (!bitcast && module_.kind(type) != op_type_bool && !module_.is_int32(type)) return 0;
    Bits result;
    if (floats && i_.opcode != op_bitcast) {
      result = bits.size() == 2 ? compared_floats(i_.opcode, bits[0], bits[1]) : std::nullopt;
      return result ? module_.constant(type, *result) : 0;
    }
    if (bits.size() == 1) result = unary(i_.opcode, bits[0]);
    if (bits.size() == 2) {
      result =
          i_.opcode == op_ext_inst ? extreme(i_.operands[1], bits[0], bits[1])
                                   : integer_result(i_.opcode, bits[0], bits[1]);
    }
    return result ? module_.constant(type, *result) : 0;
  }
  bool is_32_bits(Id type) const { return module_.global(type)->operands[0] == 32; }

  Id composite(std::span<const Id> parts) {
    if (parts.empty() || parts.size() != module_.parts(i_.type)) return 0;
    for (const Id part : parts) {
      if (part == 0) return 0;
    }
    return module_.composite(i_.type, parts);
  }

  /// Longer arrays are no constants in the passes.
  static constexpr std::uint32_t most_parts = 256;

  Module& module_;
  const Instruction& i_;
};

}  // namespace

Id constituent(Module& module, Id constant, std::uint32_t index) {
  const Instruction* i = module.global(constant);
  if (i == nullptr) return 0;
  if (i->opcode == op_constant_composite) return index < i->operands.size() ? i->operands[index] : 0;
  if (i->opcode != op_constant_null || index >= module.parts(i->type).value_or(0)) return 0;
  const Id part = module.part(i->type, index);
  return module.add_global({op_constant_null, part, module.next_id()});
}

Id folded(Module& module, const Instruction& i) {
  return Folder(module, i).folded();
}

}  // namespace halfstep::vk::ir
