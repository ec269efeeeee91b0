#include "vk/optimize/grammar.h"

#include <array>
#include <iterator>
#include <vector>

namespace halfstep::vk::ir {
namespace {

/// Opcodes above are unknown.
constexpr std::uint32_t end_of_opcodes = 6144;

struct Row {
  std::uint32_t opcode;
  std::string_view letters;
  Effect effect;
};

constexpr Row rows[] = {
#define OPCODE(name, number, operands, effect) {number, operands, Effect::effect},
#include "vk/shader/opcodes.def"
#undef OPCODE
};

/// The entries of the rows, after one for what is unknown.
std::vector<Grammar> entries() {
  std::vector<Grammar> all(1);
  for (Row row : rows) {
    Grammar entry{.known = true, .effect = row.effect};
    entry.has_type = row.letters.starts_with('T');
    if (entry.has_type) row.letters.remove_prefix(1);
    entry.has_result = row.letters.starts_with('R');
    if (entry.has_result) row.letters.remove_prefix(1);
    entry.operands = row.letters;
    all.push_back(entry);
  }
  return all;
}

/// The entry of each opcode.
constexpr std::array<std::uint8_t, end_of_opcodes> places() {
  static_assert(std::size(rows) < 256);
  std::array<std::uint8_t, end_of_opcodes> all{};
  for (std::size_t row = 0; row < std::size(rows); ++row) all[rows[row].opcode] = static_cast<std::uint8_t>(row + 1);
  return all;
}

}  // namespace

const Grammar& grammar(std::uint32_t opcode) {
  static const std::vector<Grammar> all = entries();
  static constexpr std::array<std::uint8_t, end_of_opcodes> place = places();
  return all[opcode < end_of_opcodes ? place[opcode] : 0];
}

Effect effect_of(const Instruction& i) {
  constexpr std::uint32_t modf = 35;
  constexpr std::uint32_t frexp = 51;
  const bool stores = i.opcode == op_ext_inst && (i.operands[1] == modf || i.operands[1] == frexp);
  return stores ? Effect::acts : grammar(i.opcode).effect;
}

std::size_t text_words(const Instruction& i, std::size_t at) {
  for (std::size_t word = at; word < i.operands.size(); ++word) {
    if (i.operands[word] >> 24 == 0) return word - at + 1;  // texts end with a zero, and words with zeros
  }
  return 0;
}

Id target(const Instruction& terminator, std::uint32_t condition) {
  if (terminator.opcode == op_branch_conditional) return terminator.operands[condition != 0 ? 1 : 2];
  for (std::size_t at = 2; at + 1 < terminator.operands.size(); at += 2) {
    if (terminator.operands[at] == condition) return terminator.operands[at + 1];
  }
  return terminator.operands[1];
}

}  // namespace halfstep::vk::ir
