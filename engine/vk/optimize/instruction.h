#pragma once

#include <cstdint>
#include <vector>

#include "vk/shader/opcodes.h"

/// SPIR-V as a data structure that passes change.
namespace halfstep::vk::ir {

/// Of a type, value, block or function; 0 is none.
using Id = std::uint32_t;

struct Instruction {
  std::uint32_t opcode = 0;
  Id type = 0;                            ///< of the result
  Id result = 0;                          ///< 0 if it has none
  std::vector<std::uint32_t> operands{};  ///< what follows those two
};

/// Instructions that run one after the other: phis, others, and at last a terminator, before which a merge instruction
/// may be. A block with one is the header of a construct; see "Structured control flow" in the SPIR-V specification.
struct Block {
  Id label = 0;
  std::vector<Instruction> code{};  ///< without the label

  Instruction& terminator() { return code.back(); }
  const Instruction& terminator() const { return code.back(); }
  /// The merge instruction, or null.
  const Instruction* merge() const {
    if (code.size() < 2) return nullptr;
    const Instruction& last = code[code.size() - 2];
    return last.opcode == op_selection_merge || last.opcode == op_loop_merge ? &last : nullptr;
  }
  /// Takes the merge instruction away; there is one.
  void drop_merge() { code.erase(code.end() - 2); }
};

struct Function {
  Instruction head{};  ///< OpFunction
  std::vector<Instruction> parameters{};
  std::vector<Block> blocks{};  ///< each after those that dominate it
};

}  // namespace halfstep::vk::ir
