#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"

namespace halfstep::vk::ir {
namespace {

/// Whether an instruction that computes nothing belongs to the flow of control.
bool directs_flow(std::uint32_t opcode) {
  return opcode == op_loop_merge || opcode == op_selection_merge || (opcode >= op_branch && opcode <= op_unreachable);
}

/// Finds the instructions of a function that must stay.
class Marker {
 public:
  explicit Marker(const Function& function) {
    for (const Block& block : function.blocks) {
      for (const Instruction& i : block.code) {
        if (i.result != 0) definitions_[i.result] = &i;
      }
    }
    for (const Block& block : function.blocks) {
      for (const Instruction& i : block.code) {
        if (i.opcode == op_store && is_own(i.operands[0])) {
          stores_[root(i.operands[0])].push_back(&i);
        } else if (directs_flow(i.opcode) || effect_of(i) == Effect::acts) {
          keep(i);
        }
      }
    }
    while (!waiting_.empty()) {
      const Instruction* i = waiting_.back();
      waiting_.pop_back();
      for_each_id(*i, [&](Id id) { keep_definition(id); });
    }
  }

  bool is_kept(const Instruction& i) const { return kept_.contains(&i); }

 private:
  void keep(const Instruction& i) {
    if (kept_.insert(&i).second) waiting_.push_back(&i);
  }
  void keep_definition(Id id) {
    const auto found = definitions_.find(id);
    if (found == definitions_.end()) return;
    keep(*found->second);
    if (found->second->opcode != op_variable) return;
    // Who uses a variable sees what is stored in it.
    for (const Instruction* store : stores_[id]) keep(*store);
  }
  /// The variable that a chain of addresses begins with.
  Id root(Id pointer) const {
    for (;;) {
      const auto found = definitions_.find(pointer);
      const bool chain = found != definitions_.end() && (found->second->opcode == op_access_chain ||
                                                         found->second->opcode == op_in_bounds_access_chain);
      if (!chain || found->second->operands[0] == pointer) return pointer;
      pointer = found->second->operands[0];
    }
  }
  /// Whether it points to a variable of this function.
  bool is_own(Id pointer) const {
    const auto found = definitions_.find(root(pointer));
    return found != definitions_.end() && found->second->opcode == op_variable;
  }

  std::unordered_map<Id, const Instruction*> definitions_;
  std::unordered_map<Id, std::vector<const Instruction*>> stores_;  ///< by variable
  std::unordered_set<const Instruction*> kept_;
  std::vector<const Instruction*> waiting_;
};

}  // namespace

void remove_values(Function& function) {
  const Marker marker(function);
  for (Block& block : function.blocks) {
    // In place, so that what is asked for has not moved yet.
    std::size_t end = 0;
    for (std::size_t at = 0; at < block.code.size(); ++at) {
      if (!marker.is_kept(block.code[at])) continue;
      if (end != at) block.code[end] = std::move(block.code[at]);
      ++end;
    }
    block.code.resize(end);
  }
}

void remove_functions(Module& module) {
  std::unordered_map<Id, const Function*> by_id;
  for (const Function& f : module.functions) by_id[f.head.result] = &f;
  std::unordered_set<Id> called;
  std::vector<Id> waiting;
  for (const Instruction& i : module.preamble) {
    if (i.opcode == op_entry_point) waiting.push_back(i.operands[1]);
  }
  while (!waiting.empty()) {
    const Id id = waiting.back();
    waiting.pop_back();
    if (!called.insert(id).second) continue;
    for (const Block& block : by_id.at(id)->blocks) {
      for (const Instruction& i : block.code) {
        if (i.opcode == op_function_call) waiting.push_back(i.operands[0]);
      }
    }
  }
  std::erase_if(module.functions, [&](const Function& f) { return !called.contains(f.head.result); });
}

namespace {

class GlobalMarker {
 public:
  explicit GlobalMarker(Module& module) : module_(module), used_(module.bound(), false) {}

  void run() {
    for (const Instruction& i : module_.preamble) {
      if (i.opcode == op_entry_point) {
        use(i.operands[1]);
      } else {
        use_all(i);
      }
    }
    for (const Function& f : module_.functions) use_function(f);
    for (const auto& [id, decorations] : module_.decorations) {
      if (is_workgroup_size(decorations)) use(id);
    }
    follow();
    remove();
  }

 private:
  void use(Id id) {
    if (used_[id]) return;
    used_[id] = true;
    waiting_.push_back(id);
  }
  void use_all(const Instruction& i) {
    if (i.type != 0) use(i.type);
    if (i.result != 0) use(i.result);
    for_each_id(i, [&](Id id) { use(id); });
  }
  void use_function(const Function& f) {
    use_all(f.head);
    for (const Instruction& parameter : f.parameters) use_all(parameter);
    for (const Block& block : f.blocks) {
      use(block.label);
      for (const Instruction& i : block.code) use_all(i);
    }
  }
  void follow() {
    while (!waiting_.empty()) {
      const Id id = waiting_.back();
      waiting_.pop_back();
      if (const Instruction* i = module_.global(id)) use_all(*i);
      const auto decorations = module_.decorations.find(id);
      if (decorations == module_.decorations.end()) continue;
      for (const Instruction& i : decorations->second) {
        if (i.opcode == op_decorate_id) use_all(i);
      }
    }
  }
  /// The constant that tells the workgroup's size, which nothing names.
  static bool is_workgroup_size(const std::vector<Instruction>& decorations) {
    constexpr std::uint32_t workgroup_size = 25;
    return std::ranges::any_of(decorations, [](const Instruction& i) {
      return i.opcode == op_decorate && i.operands.size() == 3 && i.operands[1] == decoration_built_in &&
             i.operands[2] == workgroup_size;
    });
  }

  void remove() {
    for (Instruction& i : module_.preamble) {
      if (i.opcode == op_entry_point) remove_from_interface(i);
    }
    std::erase_if(module_.names, [&](const auto& entry) { return entry.first >= used_.size() || !used_[entry.first]; });
    std::erase_if(module_.decorations, [&](const auto& entry) { return !used_[entry.first]; });
    for (Instruction& i : module_.take_globals()) {
      const Id id = i.opcode == op_type_forward_pointer ? i.operands[0] : i.result;
      if (used_[id]) module_.append_global(std::move(i));
    }
  }
  void remove_from_interface(Instruction& entry_point) const {
    const std::size_t first = 2 + text_words(entry_point, 2);
    const auto begin = entry_point.operands.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = std::remove_if(begin, entry_point.operands.end(), [&](Id id) { return !used_[id]; });
    entry_point.operands.erase(end, entry_point.operands.end());
  }

  Module& module_;
  std::vector<bool> used_;
  std::vector<Id> waiting_;
};

}  // namespace

void remove_globals(Module& module) {
  GlobalMarker(module).run();
}

}  // namespace halfstep::vk::ir
