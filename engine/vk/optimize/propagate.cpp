#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "vk/optimize/flow.h"
#include "vk/optimize/fold.h"
#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"

namespace halfstep::vk::ir {
namespace {

class Propagator {
 public:
  Propagator(Module& module, Function& function) : module_(module), function_(function), flow_(function) {
    for (const Instruction& parameter : function.parameters) known_[parameter.result] = varies;
    taken_.resize(function.blocks.size());
    for (std::uint32_t b = 0; b < function.blocks.size(); ++b) {
      for (const Instruction& i : function.blocks[b].code) {
        for_each_id(i, [&](Id id) { users_[id].push_back({b, &i}); });
      }
    }
  }

  void run() {
    visit_block(0);
    while (!blocks_.empty() || !values_.empty()) {
      if (!blocks_.empty()) {
        const std::uint32_t b = blocks_.back();
        blocks_.pop_back();
        visit_block(b);
        continue;
      }
      const Id value = values_.back();
      values_.pop_back();
      for (const auto& [b, i] : users_[value]) {
        if (visited_.contains(b)) visit(b, *i);
      }
    }
    Replacements constants;
    for (const auto& [id, value] : known_) {
      if (value != varies && value != 0) constants.add(id, value);
    }
    constants.apply(function_);
  }

 private:
  static constexpr Id varies = 0xffffffff;

  /// A constant, `varies`, or 0 where nothing is known yet.
  Id known(Id id) const {
    if (module_.is_constant(id)) return id;
    if (module_.global(id) != nullptr) return varies;
    const auto found = known_.find(id);
    return found == known_.end() ? 0 : found->second;
  }

  void visit_block(std::uint32_t b) {
    const bool first = visited_.insert(b).second;
    for (const Instruction& i : function_.blocks[b].code) {
      if (first || i.opcode == op_phi) visit(b, i);
    }
  }

  void visit(std::uint32_t b, const Instruction& i) {
    if (&i == &function_.blocks[b].terminator()) return visit_terminator(b, i);
    if (i.result == 0) return;
    const Id before = known(i.result);
    if (before == varies) return;
    Id after = i.opcode == op_phi ? met(b, i) : computed(i);
    if (after == before) return;
    if (before != 0) after = varies;  // once: so it ends
    known_[i.result] = after;
    values_.push_back(i.result);
  }

  Id met(std::uint32_t b, const Instruction& phi) const {
    Id result = 0;
    for (std::size_t at = 0; at < phi.operands.size(); at += 2) {
      if (!taken_[b].contains(phi.operands[at + 1])) continue;
      const Id value = known(phi.operands[at]);
      if (value == 0) continue;
      if (value == varies || (result != 0 && result != value)) return varies;
      result = value;
    }
    return result;
  }

  Id computed(const Instruction& i) {
    if (effect_of(i) != Effect::pure || i.opcode == op_undef) return varies;
    const Id condition = i.opcode == op_select ? known(i.operands[0]) : varies;
    if (condition == 0) return 0;
    if (const auto bits = condition == varies ? std::nullopt : module_.bits(condition))
      return known(i.operands[*bits != 0 ? 1 : 2]);
    Instruction with_constants = i;
    bool waits = false;
    bool all = true;
    for_each_id(with_constants, [&](Id& id) {
      const Id value = i.opcode == op_ext_inst && id == i.operands[0] ? id : known(id);
      waits |= value == 0;
      all &= value != varies;
      id = value;
    });
    if (!all) return varies;
    if (waits) return 0;
    const Id constant = folded(module_, with_constants);
    return constant == 0 ? varies : constant;
  }

  void visit_terminator(std::uint32_t b, const Instruction& terminator) {
    const bool conditional = terminator.opcode == op_branch_conditional || terminator.opcode == op_switch;
    const Id condition = conditional ? known(terminator.operands[0]) : varies;
    if (condition == 0) return;
    const auto bits = condition == varies ? std::nullopt : module_.bits(condition);
    if (bits) return take(b, target(terminator, *bits));
    for_each_target(terminator, [&](Id label) { take(b, label); });
  }

  void take(std::uint32_t b, Id label) {
    const std::uint32_t next = flow_.block_of(label);
    if (taken_[next].insert(function_.blocks[b].label).second) blocks_.push_back(next);
  }

  Module& module_;
  Function& function_;
  Flow flow_;
  std::unordered_map<Id, Id> known_;
  std::unordered_map<Id, std::vector<std::pair<std::uint32_t, const Instruction*>>> users_;
  std::vector<std::unordered_set<Id>> taken_;  ///< of each block, those that control comes from
  std::unordered_set<std::uint32_t> visited_;
  std::vector<std::uint32_t> blocks_;  ///< to visit
  std::vector<Id> values_;             ///< of which more is known
};

}  // namespace

void propagate(Module& module, Function& function) {
  Propagator(module, function).run();
}

}  // namespace halfstep::vk::ir
