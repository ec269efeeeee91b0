#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "vk/optimize/flow.h"
#include "vk/optimize/fold.h"
#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"

namespace halfstep::vk::ir {
namespace {

constexpr std::uint32_t unroll_control = 1;
constexpr std::size_t most_unrolled = 1U << 16;  // of the rounds of a loop, together

/// A loop whose rounds are known, with one way out. Blocks by their places.
struct Loop {
  std::uint32_t header = 0;
  std::uint32_t test = 0;  ///< ends the loop, or leads to the body
  std::uint32_t body = 0;
  std::uint32_t latch = 0;              ///< leads back to the header
  Id end = 0;                           ///< label of the merge block
  std::vector<std::uint32_t> blocks{};  ///< all of it, in order
  std::size_t rounds = 0;
};

class LoopFinder {
 public:
  LoopFinder(Module& module, const Function& function, const Flow& flow)
      : module_(module), function_(function), flow_(flow), inside_(constructs(function, flow)) {}

  std::optional<Loop> find(std::uint32_t header) {
    const Instruction* merge = function_.blocks[header].merge();
    const bool wanted =
        merge != nullptr && merge->opcode == op_loop_merge && (merge->operands[2] & unroll_control) != 0;
    if (!wanted) return std::nullopt;
    Loop loop{.header = header, .end = merge->operands[0]};
    const std::uint32_t end = flow_.block_of(loop.end);
    const bool shaped = find_test(loop, end) && find_latch(loop) &&
                        has_one_continue(flow_.block_of(merge->operands[1]), header) && collect(loop, end);
    return shaped && count_rounds(loop) ? std::optional(loop) : std::nullopt;
  }

 private:
  bool directly_inside(std::uint32_t b, std::uint32_t header) const { return b == header || inside_[b] == header; }

  bool find_test(Loop& loop, std::uint32_t end) const {
    if (!flow_.is_reachable(end) || flow_.predecessors(end).size() != 1) return false;
    loop.test = flow_.predecessors(end)[0];
    const Block& test = function_.blocks[loop.test];
    const bool merges = test.merge() != nullptr && loop.test != loop.header;
    if (!directly_inside(loop.test, loop.header) || merges || test.terminator().opcode != op_branch_conditional)
      return false;
    const std::uint32_t first = flow_.successors(loop.test)[0];
    loop.body = first == end ? flow_.successors(loop.test)[1] : first;
    return loop.body != loop.header && flow_.predecessors(loop.body).size() == 1;
  }
  bool find_latch(Loop& loop) const {
    const std::vector<std::uint32_t>& before = flow_.predecessors(loop.header);
    if (before.size() != 2) return false;
    const bool second = flow_.dominates(loop.header, before[1]);
    if (second == flow_.dominates(loop.header, before[0])) return false;
    loop.latch = before[second ? 1 : 0];
    return function_.blocks[loop.latch].terminator().opcode == op_branch && flow_.dominates(loop.body, loop.latch);
  }
  bool has_one_continue(std::uint32_t target, std::uint32_t header) const {
    return flow_.is_reachable(target) && flow_.predecessors(target).size() == 1 &&
           directly_inside(flow_.predecessors(target)[0], header);
  }

  /// The blocks, if control leaves them at the test only, and there is no loop in them.
  bool collect(Loop& loop, std::uint32_t end) const {
    const auto is_in = [&](std::uint32_t b) {
      return flow_.is_reachable(b) && flow_.dominates(loop.header, b) && !flow_.dominates(end, b);
    };
    for (std::uint32_t b = 0; b < function_.blocks.size(); ++b) {
      if (!is_in(b)) continue;
      loop.blocks.push_back(b);
      for (const std::uint32_t next : flow_.successors(b)) {
        if (!is_in(next) && !(b == loop.test && next == end)) return false;
      }
      const Instruction* merge = function_.blocks[b].merge();
      if (merge == nullptr || b == loop.header) continue;
      if (merge->opcode == op_loop_merge || !flow_.is_reachable(flow_.block_of(merge->operands[0]))) return false;
    }
    return true;
  }

  /// Runs what the test depends on.
  bool count_rounds(Loop& loop) {
    std::size_t size = 0;
    for (const std::uint32_t b : loop.blocks) size += function_.blocks[b].code.size();
    const Instruction& test = function_.blocks[loop.test].terminator();
    std::unordered_map<Id, Id> values;
    enter(loop, loop.header, values, values);
    for (std::size_t rounds = 0; rounds * size <= most_unrolled; ++rounds) {
      evaluate(loop, values);
      const auto condition = values.find(test.operands[0]);
      const auto bits = module_.bits(condition == values.end() ? test.operands[0] : condition->second);
      if (!bits) return false;
      if (target(test, *bits) == loop.end) {
        loop.rounds = rounds;
        return true;
      }
      std::unordered_map<Id, Id> next;
      enter(loop, loop.latch, values, next);
      values = std::move(next);
    }
    return false;
  }
  /// The values of the header's phis where control comes from the latch, or from another block.
  void enter(const Loop& loop, std::uint32_t from, const std::unordered_map<Id, Id>& values,
             std::unordered_map<Id, Id>& next) {
    const Id latch = function_.blocks[loop.latch].label;
    std::vector<std::pair<Id, Id>> entered;
    for (const Instruction& phi : function_.blocks[loop.header].code) {
      if (phi.opcode != op_phi) break;
      for (std::size_t at = 0; at < phi.operands.size(); at += 2) {
        if ((phi.operands[at + 1] == latch) != (from == loop.latch)) continue;
        const auto known = values.find(phi.operands[at]);
        const Id value = known == values.end() ? phi.operands[at] : known->second;
        if (module_.is_constant(value)) entered.emplace_back(phi.result, value);
      }
    }
    next.insert(entered.begin(), entered.end());
  }
  void evaluate(const Loop& loop, std::unordered_map<Id, Id>& values) {
    for (const std::uint32_t b : loop.blocks) {
      for (const Instruction& i : function_.blocks[b].code) {
        const bool counts = i.result != 0 && effect_of(i) == Effect::pure && i.opcode != op_ext_inst &&
                            (module_.is_int32(i.type) || module_.kind(i.type) == op_type_bool);
        if (!counts) continue;
        Instruction known = i;
        bool all = true;
        for_each_id(known, [&](Id& id) {
          if (const auto value = values.find(id); value != values.end()) id = value->second;
          all = all && module_.is_constant(id);
        });
        const Id constant = all ? folded(module_, known) : 0;
        if (constant != 0) values[i.result] = constant;
      }
    }
  }

  Module& module_;
  const Function& function_;
  const Flow& flow_;
  std::vector<std::uint32_t> inside_;
};

/// Writes the rounds of a loop one after the other.
class Unroller {
 public:
  Unroller(Module& module, const Function& function, const Flow& flow, const Loop& loop)
      : module_(module), function_(function), flow_(flow), loop_(loop), next_header_(label(loop.header)) {}

  void write(std::vector<Block>& blocks) {
    for (std::size_t round = 0; round <= loop_.rounds; ++round) {
      begin(round);
      for (const std::uint32_t b : loop_.blocks) {
        if (is_in_round(b, round)) blocks.push_back(copy(b, round));
      }
    }
  }
  /// What is left of the values that were computed up to the test: those of the last round.
  void note_last(Replacements& values) const {
    for (const std::uint32_t b : loop_.blocks) {
      for (const Instruction& i : function_.blocks[b].code) {
        if (i.result != 0 && ids_.contains(i.result)) values.add(i.result, ids_.at(i.result));
      }
    }
  }
  Id last_test() const { return ids_.at(label(loop_.test)); }

 private:
  Id label(std::uint32_t b) const { return function_.blocks[b].label; }
  /// The last round ends at the test.
  bool is_in_round(std::uint32_t b, std::size_t round) const {
    return round < loop_.rounds || !flow_.dominates(loop_.body, b);
  }
  Id mapped(Id id) const {
    const auto found = ids_.find(id);
    return found == ids_.end() ? id : found->second;
  }

  /// Gives what the round defines new ids, and the header's phis the values of the round before.
  void begin(std::size_t round) {
    std::unordered_map<Id, Id> ids;
    for (const std::uint32_t b : loop_.blocks) {
      if (!is_in_round(b, round)) continue;
      ids[label(b)] = module_.next_id();
      for (const Instruction& i : function_.blocks[b].code) {
        if (i.result == 0) continue;
        if (i.opcode == op_phi && b == loop_.header) {
          ids[i.result] = entering(i, round > 0);
        } else {
          ids[i.result] = module_.next_id();
          module_.copy_decorations(i.result, ids[i.result]);
        }
      }
    }
    ids_ = std::move(ids);
    ids_[label(loop_.header)] = next_header_;
    next_header_ = module_.next_id();
  }
  Id entering(const Instruction& phi, bool from_latch) const {
    for (std::size_t at = 0; at < phi.operands.size(); at += 2) {
      if ((phi.operands[at + 1] == label(loop_.latch)) == from_latch) return mapped(phi.operands[at]);
    }
    return phi.operands[0];
  }

  Block copy(std::uint32_t b, std::size_t round) {
    Block block{mapped(label(b))};
    for (const Instruction& original : function_.blocks[b].code) {
      const bool of_header = b == loop_.header && (original.opcode == op_phi || original.opcode == op_loop_merge);
      if (of_header) continue;
      Instruction i = original;
      for_each_id(i, [&](Id& id) { id = mapped(id); });
      i.result = mapped(i.result);
      block.code.push_back(std::move(i));
    }
    if (b == loop_.test)
      block.terminator() = {op_branch, 0, 0, {round < loop_.rounds ? mapped(label(loop_.body)) : loop_.end}};
    if (b == loop_.latch) block.terminator() = {op_branch, 0, 0, {next_header_}};
    return block;
  }

  Module& module_;
  const Function& function_;
  const Flow& flow_;
  const Loop& loop_;
  Id next_header_;                    ///< label of the header of the next round
  std::unordered_map<Id, Id> ids_{};  ///< of the round
};

}  // namespace

bool unroll(Module& module, Function& function) {
  const Flow flow(function);
  LoopFinder finder(module, function, flow);
  std::unordered_map<std::uint32_t, Loop> loops;
  std::vector<bool> in_loop(function.blocks.size(), false);
  for (const std::uint32_t b : flow.order()) {
    std::optional<Loop> loop = finder.find(b);
    if (!loop) continue;
    for (const std::uint32_t of_loop : loop->blocks) in_loop[of_loop] = true;
    loops.emplace(b, std::move(*loop));
  }
  if (loops.empty()) return false;
  std::vector<Block> blocks;
  Replacements values;
  std::unordered_map<Id, Id> tests;  // by the label of the merge block
  for (std::uint32_t b = 0; b < function.blocks.size(); ++b) {
    if (const auto loop = loops.find(b); loop != loops.end()) {
      Unroller unroller(module, function, flow, loop->second);
      unroller.write(blocks);
      unroller.note_last(values);
      tests[loop->second.end] = unroller.last_test();
    } else if (!in_loop[b]) {
      blocks.push_back(std::move(function.blocks[b]));
    }
  }
  function.blocks = std::move(blocks);
  for (Block& block : function.blocks) {
    const auto test = tests.find(block.label);
    for (Instruction& i : block.code) {
      if (test != tests.end() && i.opcode == op_phi) i.operands[1] = test->second;  // there is one way in
    }
  }
  values.apply(function);
  return true;
}

}  // namespace halfstep::vk::ir
