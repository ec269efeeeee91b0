#include <algorithm>
#include <utility>

#include "vk/optimize/flow.h"
#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"
#include "vk/optimize/variable_slots.h"

namespace halfstep::vk::ir {
namespace {

/// Gives each slot a value at each place in the function, with phis where ways meet that bring different ones: as
/// Cytron and others do, with phis only for slots that a block reads before it writes them.
class Promoter {
 public:
  Promoter(Module& module, Function& function)
      : module_(module), function_(function), slots_(module, function), flow_(function) {}

  void run() {
    if (slots_.types().empty()) return;
    place_phis();
    rename();
    complete_phis();
    values_.apply(function_);
  }

 private:
  struct Phi {
    std::uint32_t slot = 0;
    Instruction instruction{};
  };

  bool is_store(const Instruction& i) const { return i.opcode == op_store && slots_.place(i.operands[0]) != nullptr; }
  bool is_load(const Instruction& i) const { return i.opcode == op_load && slots_.place(i.operands[0]) != nullptr; }

  void place_phis() {
    const std::size_t count = slots_.types().size();
    std::vector<std::vector<std::uint32_t>> writers(count);  // blocks
    std::vector<bool> crosses(count, false);                 // whether a block reads what others wrote
    for (const std::uint32_t b : flow_.order()) note_accesses(b, writers, crosses);
    find_frontiers();
    phis_.resize(function_.blocks.size());
    std::vector<std::uint32_t> placed(function_.blocks.size(), Flow::none);  // the last slot that has a phi there
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      if (!crosses[slot]) continue;
      std::vector<std::uint32_t> waiting = writers[slot];
      while (!waiting.empty()) {
        const std::uint32_t b = waiting.back();
        waiting.pop_back();
        for (const std::uint32_t meeting : frontiers_[b]) {
          if (placed[meeting] == slot) continue;
          placed[meeting] = slot;
          phis_[meeting].push_back({slot, {op_phi, slots_.types()[slot], module_.next_id()}});
          waiting.push_back(meeting);
        }
      }
    }
  }

  void note_accesses(std::uint32_t b, std::vector<std::vector<std::uint32_t>>& writers, std::vector<bool>& crosses) {
    const auto written = [&](std::uint32_t slot) { return !writers[slot].empty() && writers[slot].back() == b; };
    for (const Instruction& i : function_.blocks[b].code) {
      if (!is_load(i) && !is_store(i)) continue;
      const Place& place = *slots_.place(i.operands[0]);
      const std::uint32_t end = place.slot + slots_.count(place.type).value_or(1);
      for (std::uint32_t slot = place.slot; slot < end; ++slot) {
        const bool reads = i.opcode == op_load || !place.path.empty();
        if (reads && !written(slot)) crosses[slot] = true;
        if (i.opcode == op_store && !written(slot)) writers[slot].push_back(b);
      }
    }
  }

  /// Where a block's dominance ends: there what it writes meets what others do.
  void find_frontiers() {
    frontiers_.resize(function_.blocks.size());
    for (const std::uint32_t b : flow_.order()) {
      if (flow_.predecessors(b).size() < 2) continue;
      for (std::uint32_t before : flow_.predecessors(b)) {
        for (; before != Flow::none && before != flow_.immediate_dominator(b);
             before = flow_.immediate_dominator(before)) {
          if (frontiers_[before].empty() || frontiers_[before].back() != b) frontiers_[before].push_back(b);
        }
      }
    }
  }

  void rename() {
    current_ = slots_.initial();
    ends_.resize(function_.blocks.size());
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // blocks, and where the changes before them end
    for (const std::uint32_t b : flow_.tree()) {
      while (!path.empty() && !flow_.dominates(path.back().first, b)) {
        undo(path.back().second);
        path.pop_back();
      }
      path.emplace_back(b, changes_.size());
      for (const Phi& phi : phis_[b]) set(phi.slot, phi.instruction.result);
      rewrite(function_.blocks[b]);
      note_ends(b);
    }
  }
  void set(std::uint32_t slot, Id value) {
    changes_.emplace_back(slot, current_[slot]);
    current_[slot] = value;
  }
  void undo(std::size_t end) {
    for (; changes_.size() > end; changes_.pop_back()) current_[changes_.back().first] = changes_.back().second;
  }
  /// What the phis of the blocks after this one take from it.
  void note_ends(std::uint32_t b) {
    for (const std::uint32_t next : flow_.successors(b)) {
      for (const Phi& phi : phis_[next]) ends_[b][phi.slot] = value(phi.slot);
    }
  }
  Id value(std::uint32_t slot) {
    return current_[slot] != 0 ? current_[slot] : module_.undefined(slots_.types()[slot]);
  }

  void rewrite(Block& block) {
    std::vector<Instruction> code;
    code.reserve(block.code.size());
    for (Instruction& i : block.code) {
      for_each_id(i, [&](Id& id) { id = values_(id); });
      if (is_load(i)) {
        const Place& place = *slots_.place(i.operands[0]);
        std::uint32_t slot = place.slot;
        values_.add(i.result, place.path.empty() ? read(place.type, slot, code) : extract(place, i, code));
      } else if (is_store(i)) {
        const Place& place = *slots_.place(i.operands[0]);
        std::uint32_t slot = place.slot;
        if (place.path.empty()) {
          write(place.type, i.operands[1], slot, code);
        } else {
          insert(place, i.operands[1], code);
        }
      } else if (i.result == 0 || slots_.place(i.result) == nullptr) {  // not the variables, nor pointers to them
        code.push_back(std::move(i));
      }
    }
    block.code = std::move(code);
  }

  /// The value of a type whose slots begin at `slot`, which becomes the one after them.
  Id read(Id type, std::uint32_t& slot, std::vector<Instruction>& code) {
    const std::uint32_t kind = module_.kind(type);
    if (kind != op_type_array && kind != op_type_struct) return value(slot++);
    Instruction whole{op_composite_construct, type, module_.next_id()};
    for (std::uint32_t part = 0; part < *module_.parts(type); ++part) {
      whole.operands.push_back(read(module_.part(type, part), slot, code));
    }
    code.push_back(whole);
    return whole.result;
  }
  void write(Id type, Id value, std::uint32_t& slot, std::vector<Instruction>& code) {
    const std::uint32_t kind = module_.kind(type);
    if (kind != op_type_array && kind != op_type_struct) return set(slot++, value);
    for (std::uint32_t part = 0; part < *module_.parts(type); ++part) {
      const Id id = module_.next_id();
      code.push_back({op_composite_extract, module_.part(type, part), id, {value, part}});
      write(module_.part(type, part), id, slot, code);
    }
  }
  Id extract(const Place& place, const Instruction& load, std::vector<Instruction>& code) {
    Instruction i{op_composite_extract, load.type, module_.next_id(), {value(place.slot)}};
    i.operands.insert(i.operands.end(), place.path.begin(), place.path.end());
    code.push_back(i);
    return i.result;
  }
  void insert(const Place& place, Id component, std::vector<Instruction>& code) {
    Instruction i{op_composite_insert, slots_.types()[place.slot], module_.next_id(), {component, value(place.slot)}};
    i.operands.insert(i.operands.end(), place.path.begin(), place.path.end());
    code.push_back(i);
    set(place.slot, i.result);
  }

  void complete_phis() {
    // Blocks that cannot be reached lead somewhere, too.
    std::vector<std::vector<std::uint32_t>> before(function_.blocks.size());
    for (std::uint32_t b = 0; b < function_.blocks.size(); ++b) {
      for (const std::uint32_t next : flow_.successors(b)) {
        if (before[next].empty() || before[next].back() != b) before[next].push_back(b);
      }
    }
    for (std::uint32_t b = 0; b < function_.blocks.size(); ++b) {
      std::vector<Instruction> phis;
      for (Phi& phi : phis_[b]) {
        for (const std::uint32_t from : before[b]) {
          const Id value =
              flow_.is_reachable(from) ? ends_[from].at(phi.slot) : module_.undefined(phi.instruction.type);
          phi.instruction.operands.insert(phi.instruction.operands.end(), {value, function_.blocks[from].label});
        }
        phis.push_back(std::move(phi.instruction));
      }
      std::vector<Instruction>& code = function_.blocks[b].code;
      code.insert(code.begin(), std::make_move_iterator(phis.begin()), std::make_move_iterator(phis.end()));
    }
  }

  Module& module_;
  Function& function_;
  Slots slots_;
  Flow flow_;
  std::vector<std::vector<std::uint32_t>> frontiers_;
  std::vector<std::vector<Phi>> phis_;                       ///< of each block
  std::vector<std::unordered_map<std::uint32_t, Id>> ends_;  ///< of each block, values of slots
  std::vector<Id> current_;                                  ///< value of each slot
  std::vector<std::pair<std::uint32_t, Id>> changes_;        ///< slots, and what they were
  Replacements values_;                                      ///< of loads
};

}  // namespace

void promote(Module& module, Function& function) {
  Promoter(module, function).run();
}

}  // namespace halfstep::vk::ir
