#include "vk/optimize/specialized.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "vk/optimize/flow.h"

namespace halfstep::vk {
namespace {

using ir::Function;
using ir::Module;

/// Folds what is known by now.
void fold(Module& module, Function& function) {
  ir::promote(module, function);
  ir::propagate(module, function);
  ir::remove_branches(module, function);
}

void finish(Module& module, Function& function) {
  constexpr int most_rounds = 6;  // what one simplifies, the next may fold
  bool again = true;
  for (int round = 0; round < 2 || (again && round < most_rounds); ++round) {
    do fold(module, function);
    while (ir::unroll(module, function));
    ir::simplify(module, function);
    ir::remove_values(function);
    again = ir::select(module, function);
    ir::remove_branches(module, function);
    ir::join_blocks(function);
  }
  ir::remove_values(function);
}

bool is_entry_point(const Module& module, const Function& function) {
  return std::ranges::any_of(module.preamble, [&](const ir::Instruction& i) {
    return i.opcode == op_entry_point && i.operands[1] == function.head.result;
  });
}

/// The module that becomes of it; nothing if it cannot be read.
std::vector<std::uint32_t> passed(std::span<const std::uint32_t> words, const Constants& constants) {
  constexpr int deepest_call = 64;
  std::optional<Module> module = ir::read(words);
  if (!module || !std::ranges::all_of(module->functions, ir::is_structured)) return {};
  ir::freeze(*module, constants);
  for (Function& f : module->functions) {
    ir::remove_branches(*module, f);
    fold(*module, f);
  }
  // Callers first, so that only what is left of them is inlined into them.
  for (Function& f : module->functions) {
    if (!is_entry_point(*module, f)) continue;
    for (int depth = 0; depth < deepest_call && ir::inline_calls(*module, f); ++depth) fold(*module, f);
  }
  ir::remove_functions(*module);
  for (Function& f : module->functions) finish(*module, f);
  ir::remove_globals(*module);
  return ir::write(*module);
}

}  // namespace

std::vector<std::uint32_t> specialized(std::span<const std::uint32_t> words, const Constants& constants) {
  std::vector<std::uint32_t> result;
  try {
    result = passed(words, constants);
  } catch (const std::out_of_range&) {
    // A block that is nowhere, in a module that is not valid: judging it is the driver's.
  }
  return result.empty() ? std::vector(words.begin(), words.end()) : result;
}

}  // namespace halfstep::vk
