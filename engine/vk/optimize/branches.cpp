#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "vk/optimize/flow.h"
#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"

namespace halfstep::vk::ir {
namespace {

/// Labels of blocks that must stay although control may not come to them.
struct Kept {
  std::unordered_set<Id> merges;
  std::unordered_map<Id, Id> continues;  ///< by label: the loop's header
};

Kept kept_by_headers(const Function& function, const Flow& flow) {
  Kept kept;
  for (const std::uint32_t b : flow.order()) {
    const Instruction* merge = function.blocks[b].merge();
    if (merge == nullptr) continue;
    kept.merges.insert(merge->operands[0]);
    if (merge->opcode == op_loop_merge) kept.continues[merge->operands[1]] = function.blocks[b].label;
  }
  return kept;
}

/// One step at a time; each leaves the function valid but for blocks that cannot be reached.
class Cleaner {
 public:
  Cleaner(Module& module, Function& function) : module_(module), function_(function) {}

  void run() {
    do {
      simplify_terminators();
      remove_unreachable();
    } while (drop_constructs());
  }

 private:
  void simplify_terminators() {
    const Flow flow(function_);
    for (const std::uint32_t b : flow.order()) {
      Block& block = function_.blocks[b];
      const std::optional<Id> only = only_target(block);
      if (!only || leads_back(flow, b)) continue;
      const Instruction* merge = block.merge();
      const bool selection = merge != nullptr && merge->opcode == op_selection_merge;
      if (selection && block.terminator().opcode == op_switch) {  // which blocks in it may leave from anywhere
        block.terminator().operands.resize(2);
        block.terminator().operands[1] = *only;
        continue;
      }
      if (selection) block.drop_merge();
      block.terminator() = {op_branch, 0, 0, {*only}};
    }
  }

  /// Where a terminator that could lead to several blocks leads.
  std::optional<Id> only_target(const Block& block) const {
    const Instruction& terminator = block.terminator();
    if (terminator.opcode != op_branch_conditional && terminator.opcode != op_switch) return std::nullopt;
    if (const auto condition = module_.bits(terminator.operands[0])) return target(terminator, *condition);
    std::optional<Id> only;
    bool several = false;
    for_each_target(terminator, [&](Id label) {
      several |= only && *only != label;
      only = label;
    });
    return several ? std::nullopt : only;
  }

  /// Whether a terminator leads to the header of the loop that it ends: then the loop stays one.
  bool leads_back(const Flow& flow, std::uint32_t b) const {
    return std::ranges::any_of(flow.successors(b), [&](std::uint32_t next) { return flow.dominates(next, b); });
  }

  void remove_unreachable() {
    const Flow flow(function_);
    const Kept kept = kept_by_headers(function_, flow);
    std::vector<Block> blocks;
    for (std::uint32_t b = 0; b < function_.blocks.size(); ++b) {
      Block& block = function_.blocks[b];
      if (!flow.is_reachable(b)) {
        const auto loop = kept.continues.find(block.label);
        if (loop != kept.continues.end()) {
          block.code = {{op_branch, 0, 0, {loop->second}}};
        } else if (kept.merges.contains(block.label)) {
          block.code = {{op_unreachable}};
        } else {
          continue;
        }
      }
      blocks.push_back(std::move(block));
    }
    function_.blocks = std::move(blocks);
    complete_phis();
  }

  /// Takes what no longer comes out of phis, and undefined values where nothing is known to come.
  void complete_phis() {
    const Flow flow(function_);
    std::vector<std::vector<Id>> before(function_.blocks.size());
    for (std::uint32_t b = 0; b < function_.blocks.size(); ++b) {
      for (const std::uint32_t next : flow.successors(b)) before[next].push_back(function_.blocks[b].label);
    }
    Replacements values;
    for (const std::uint32_t b : flow.order()) {
      std::vector<Instruction>& code = function_.blocks[b].code;
      for (Instruction& phi : code) {
        if (phi.opcode != op_phi) break;
        complete(phi, before[b]);
        const Id same = same_value(phi, flow, values);
        if (same != 0) values.add(phi.result, same);
      }
      std::erase_if(code, [&](const Instruction& i) { return i.opcode == op_phi && values(i.result) != i.result; });
    }
    values.apply(function_);
  }

  void complete(Instruction& phi, const std::vector<Id>& before) {
    std::vector<std::uint32_t> operands;
    for (const Id label : before) {
      if (is_in(operands, label)) continue;  // several edges
      Id value = 0;
      for (std::size_t at = 0; at < phi.operands.size(); at += 2) {
        if (phi.operands[at + 1] == label) value = phi.operands[at];
      }
      if (value == 0) value = module_.undefined(phi.type);
      operands.insert(operands.end(), {value, label});
    }
    phi.operands = std::move(operands);
  }
  static bool is_in(const std::vector<std::uint32_t>& operands, Id label) {
    for (std::size_t at = 1; at < operands.size(); at += 2) {
      if (operands[at] == label) return true;
    }
    return false;
  }

  /// The value that a phi has wherever control comes from; 0 if there are several.
  static Id same_value(const Instruction& phi, const Flow& flow, const Replacements& values) {
    Id same = 0;
    for (std::size_t at = 0; at < phi.operands.size(); at += 2) {
      if (!flow.is_reachable(flow.block_of(phi.operands[at + 1]))) continue;
      const Id value = values(phi.operands[at]);
      if (value == phi.result || value == same) continue;
      if (same != 0) return 0;
      same = value;
    }
    return same;
  }

  /// Makes no constructs of those whose end is reached in one way only, from directly inside; returns whether there
  /// were.
  bool drop_constructs() {
    const Flow flow(function_);
    const std::vector<std::uint32_t> inside = constructs(function_, flow);
    bool dropped = false;
    for (const std::uint32_t b : flow.order()) {
      Block& block = function_.blocks[b];
      const Instruction* merge = block.merge();
      if (merge == nullptr) continue;
      const bool loop = merge->opcode == op_loop_merge;
      if (loop ? flow.is_reachable(flow.block_of(merge->operands[1])) : !is_plain(block)) continue;
      const std::vector<std::uint32_t>& ends = flow.predecessors(flow.block_of(merge->operands[0]));
      if (ends.size() > 1 || (ends.size() == 1 && ends[0] != b && (inside[ends[0]] != b || !goes_on(ends[0]))))
        continue;
      block.drop_merge();
      if (!loop) block.terminator() = {op_branch, 0, 0, {block.terminator().operands[1]}};
      dropped = true;
    }
    return dropped || drop_empty(flow);
  }
  bool goes_on(std::uint32_t b) const {
    return function_.blocks[b].terminator().opcode == op_branch && function_.blocks[b].merge() == nullptr;
  }
  static bool is_plain(const Block& block) {
    return block.terminator().opcode == op_switch && block.terminator().operands.size() == 2;
  }

  /// Selections between blocks without instructions.
  bool drop_empty(const Flow& flow) {
    const Kept kept = kept_by_headers(function_, flow);
    bool dropped = false;
    for (const std::uint32_t b : flow.order()) {
      Block& block = function_.blocks[b];
      const Instruction* merge = block.merge();
      if (merge == nullptr || merge->opcode != op_selection_merge) continue;
      const Id end = merge->operands[0];
      if (function_.blocks[flow.block_of(end)].code[0].opcode == op_phi) continue;
      bool empty = true;
      for_each_target(block.terminator(), [&](Id label) {
        const Block& next = function_.blocks[flow.block_of(label)];
        const bool through = next.code.size() == 1 && next.terminator().opcode == op_branch &&
                             next.terminator().operands[0] == end && !kept.merges.contains(label) &&
                             !kept.continues.contains(label) && flow.predecessors(flow.block_of(label)).size() == 1;
        empty = empty && (label == end || through);
      });
      if (!empty) continue;
      block.drop_merge();
      block.terminator() = {op_branch, 0, 0, {end}};
      dropped = true;
    }
    return dropped;
  }

  Module& module_;
  Function& function_;
};

}  // namespace

void remove_branches(Module& module, Function& function) {
  Cleaner(module, function).run();
}

void join_blocks(Function& function) {
  const Flow flow(function);
  const Kept kept = kept_by_headers(function, flow);
  std::unordered_map<Id, Id> ends;  // of blocks by label: that of the block which has their end
  std::vector<std::uint32_t> into(function.blocks.size());
  std::vector<bool> gone(function.blocks.size(), false);
  for (const std::uint32_t b : flow.order()) {
    into[b] = b;
    if (b == 0 || flow.predecessors(b).size() != 1) continue;
    const std::uint32_t before = into[flow.predecessors(b)[0]];
    Block& first = function.blocks[before];
    Block& second = function.blocks[b];
    const bool loop = second.merge() != nullptr && second.merge()->opcode == op_loop_merge;
    const bool fixed = loop || kept.merges.contains(second.label) || kept.continues.contains(second.label);
    if (fixed || first.terminator().opcode != op_branch || first.merge() != nullptr) continue;
    if (second.code[0].opcode == op_phi) continue;
    first.code.pop_back();
    std::ranges::move(second.code, std::back_inserter(first.code));
    ends[second.label] = first.label;
    into[b] = before;
    gone[b] = true;
  }
  std::vector<Block> blocks;
  for (std::uint32_t b = 0; b < function.blocks.size(); ++b) {
    if (!gone[b]) blocks.push_back(std::move(function.blocks[b]));
  }
  function.blocks = std::move(blocks);
  for (Block& block : function.blocks) {
    for (Instruction& phi : block.code) {
      if (phi.opcode != op_phi) break;
      for (std::size_t at = 1; at < phi.operands.size(); at += 2) {
        if (const auto end = ends.find(phi.operands[at]); end != ends.end()) phi.operands[at] = end->second;
      }
    }
  }
}

}  // namespace halfstep::vk::ir
