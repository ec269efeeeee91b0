#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vk/optimize/instruction.h"

namespace halfstep::vk::ir {

enum class Effect : std::uint8_t { pure, reads, acts, none };

/// What vk/shader/opcodes.def says of an instruction.
struct Grammar {
  bool known = false;
  bool has_type = false;
  bool has_result = false;
  std::string_view operands{};  ///< after those, a letter each
  Effect effect = Effect::none;
};

const Grammar& grammar(std::uint32_t opcode);
/// That of the instruction's opcode; or, of GLSL.std.450, of its number.
Effect effect_of(const Instruction& i);

/// The number of words of a text that begins at operand `at`; 0 if it does not end.
std::size_t text_words(const Instruction& i, std::size_t at);

/// Calls visit(index) for each operand that is an id, `at` on; returns whether the operands are those of the grammar.
template <typename Visit>
bool visit_ids(const Instruction& i, std::string_view letters, std::size_t at, Visit visit) {
  const std::size_t end = i.operands.size();
  const auto rest = [&] {
    while (at < end) visit(at++);
  };
  const auto memory_access = [&] {
    if (at == end) return;
    const std::uint32_t mask = i.operands[at++];
    if ((mask & 2) != 0) ++at;  // alignment
    for (const std::uint32_t scope : {8U, 16U}) {
      if ((mask & scope) != 0 && at < end) visit(at++);
    }
  };
  for (const char letter : letters) {
    const bool needed = letter == 'i' || letter == 'n' || letter == 's' || letter == 'x';
    if (needed && at >= end) return false;
    if (letter == 'i') visit(at++);
    if (letter == 'n') ++at;
    if (letter == 's') {
      const std::size_t words = text_words(i, at);
      if (words == 0) return false;
      at += words;
    }
    if (letter == 'o' && at < end) visit(at++);
    if (letter == 'N') at = end;
    if (letter == 'I') rest();
    if (letter == 'm') memory_access();
    if (letter == 'g' && at < end) {
      ++at;
      rest();
    }
    for (; letter == 'w' && at + 1 < end; at += 2) visit(at + 1);
    if (letter == 'x') {
      const Grammar& inner = grammar(i.operands[at]);
      return inner.known && inner.effect == Effect::pure && inner.has_type && i.operands[at] != op_spec_constant_op &&
             visit_ids(i, inner.operands, at + 1, visit);
    }
  }
  return at == end;
}

/// Calls visit(id) for each operand that is an id, which it may change. Not for the type and the result.
template <typename AnyInstruction, typename Visit>
void for_each_id(AnyInstruction& i, Visit visit) {
  visit_ids(i, grammar(i.opcode).operands, 0, [&](std::size_t at) { visit(i.operands[at]); });
}

/// Calls visit(label) for each block that a terminator names, which it may change.
template <typename AnyInstruction, typename Visit>
void for_each_target(AnyInstruction& terminator, Visit visit) {
  const bool conditional = terminator.opcode == op_branch_conditional || terminator.opcode == op_switch;
  if (!conditional && terminator.opcode != op_branch) return;
  bool first = conditional;  // the condition
  for_each_id(terminator, [&](auto& id) {
    if (!first) visit(id);
    first = false;
  });
}

/// The block that a terminator with a condition leads to.
Id target(const Instruction& terminator, std::uint32_t condition);

}  // namespace halfstep::vk::ir
