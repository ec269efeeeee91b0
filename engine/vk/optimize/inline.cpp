#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "vk/optimize/flow.h"
#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"

namespace halfstep::vk::ir {
namespace {

constexpr std::size_t most_instructions = 1U << 18;  // a function that is longer keeps its calls
constexpr std::uint32_t no_inline = 2;               // function control DontInline

/// How a call can be replaced: not at all; by blocks of which one is the last; or by a construct that every return
/// leaves.
enum class Shape { stays, straight, returns_early };

bool is_return(const Block& block) {
  const std::uint32_t opcode = block.terminator().opcode;
  return opcode == op_return || opcode == op_return_value;
}

Shape shape_of(const Function& f) {
  if ((f.head.operands[0] & no_inline) != 0) return Shape::stays;
  const Flow flow(f);
  const std::vector<std::uint32_t> inside = constructs(f, flow);
  std::size_t returns = 0;
  bool early = false;
  for (const std::uint32_t b : flow.order()) {
    if (!is_return(f.blocks[b])) continue;
    ++returns;
    early |= inside[b] != Flow::none;
    // A branch may leave several selections at once, but not loops or switches.
    for (std::uint32_t header = inside[b]; header != Flow::none; header = inside[header]) {
      const bool selection = f.blocks[header].terminator().opcode == op_branch_conditional &&
                             f.blocks[header].merge()->opcode == op_selection_merge;
      if (!selection) return Shape::stays;
    }
  }
  if (returns == 0) return Shape::stays;
  return early || returns > 1 ? Shape::returns_early : Shape::straight;
}

class Inliner {
 public:
  Inliner(Module& module, Function& function) : module_(module), function_(function) {
    for (std::size_t f = 0; f < module.functions.size(); ++f) {
      const Function& callee = module.functions[f];
      if (&callee != &function) callees_[callee.head.result] = {f, shape_of(callee)};
    }
  }

  bool run() {
    size_ = 0;
    for (const Block& block : function_.blocks) size_ += block.code.size();
    bool any = false;
    std::vector<Block> before = std::exchange(function_.blocks, {});
    for (Block& block : before) any |= take(std::move(block));
    for (Block& block : function_.blocks) rename_ends(block);
    std::vector<Instruction>& first = function_.blocks.front().code;
    first.insert(first.begin(), variables_.begin(), variables_.end());
    results_.apply(function_);
    return any;
  }

 private:
  struct Callee {
    std::size_t function = 0;
    Shape shape = Shape::stays;
  };

  const Callee* callee(const Instruction& i) const {
    if (i.opcode != op_function_call || size_ > most_instructions) return nullptr;
    const auto found = callees_.find(i.operands[0]);
    return found == callees_.end() || found->second.shape == Shape::stays ? nullptr : &found->second;
  }

  /// Adds the block with its calls replaced; returns whether there was one.
  bool take(Block block) {
    current_ = {block.label};
    const Instruction* merge = block.merge();
    const bool is_loop = merge != nullptr && merge->opcode == op_loop_merge;
    const bool whole_loop = is_loop && merge->operands[1] == block.label;  // cannot become several blocks
    const bool calls =
        !whole_loop && std::ranges::any_of(block.code, [&](const Instruction& i) { return callee(i) != nullptr; });
    if (calls && is_loop) split_header(block);
    for (Instruction& i : block.code) {
      const Callee* called = calls ? callee(i) : nullptr;
      if (called == nullptr) {
        current_.code.push_back(std::move(i));
      } else {
        replace(i, *called);
      }
    }
    if (current_.label != block.label) ends_[block.label] = current_.label;
    own_.insert(block.label);
    function_.blocks.push_back(std::move(current_));
    return calls;
  }

  /// Leaves a loop's header its phis only, so that what takes a call's place is in the loop.
  void split_header(Block& block) {
    const auto end_of_phis = std::ranges::find_if(block.code, [](const Instruction& i) { return i.opcode != op_phi; });
    current_.code.assign(block.code.begin(), end_of_phis);
    current_.code.push_back(*block.merge());
    block.drop_merge();
    block.code.erase(block.code.begin(), end_of_phis);
    const Id label = module_.next_id();
    current_.code.push_back({op_branch, 0, 0, {label}});
    next(label);
  }
  void next(Id label) { function_.blocks.push_back(std::exchange(current_, Block{label})); }

  void replace(const Instruction& call, const Callee& called) {
    const Function& f = module_.functions[called.function];
    begin_copy(f, call);
    const bool early = called.shape == Shape::returns_early;
    Id returned = 0;
    Id end = 0;
    if (early) {
      end = module_.next_id();
      if (module_.kind(call.type) != op_type_void) returned = variable_of(call.type);
      const Id zero = module_.constant(module_.type_u32(), 0);
      const Id begin = module_.next_id();
      current_.code.push_back({op_selection_merge, 0, 0, {end, 0}});
      current_.code.push_back({op_switch, 0, 0, {zero, begin}});
      next(begin);
    }
    ids_[f.blocks.front().label] = current_.label;
    const Block* last = early ? nullptr : &*std::ranges::find_if(f.blocks, is_return);
    for (const Block& block : f.blocks) {
      if (&block == last && f.blocks.size() > 1 && &block != &f.blocks.front()) continue;
      if (&block != &f.blocks.front()) next(ids_.at(block.label));
      copy(block, returned, end);
    }
    if (early) {
      next(end);
      if (returned != 0) current_.code.push_back({op_load, call.type, call.result, {returned}});
      return;
    }
    if (last != &f.blocks.front()) {
      next(ids_.at(last->label));
      copy(*last, 0, 0);
    }
    const Instruction& end_of_last = last->terminator();
    if (end_of_last.opcode == op_return_value) results_.add(call.result, mapped(end_of_last.operands[0]));
  }

  /// Gives what the function defines new ids, and its parameters the arguments.
  void begin_copy(const Function& f, const Instruction& call) {
    ids_.clear();
    for (std::size_t p = 0; p < f.parameters.size(); ++p) ids_[f.parameters[p].result] = call.operands[p + 1];
    for (const Block& block : f.blocks) {
      ids_[block.label] = module_.next_id();
      size_ += block.code.size();
      for (const Instruction& i : block.code) {
        if (i.result == 0) continue;
        const Id id = ids_[i.result] = module_.next_id();
        module_.copy_decorations(i.result, id);
      }
    }
  }
  Id mapped(Id id) const {
    const auto found = ids_.find(id);
    return found == ids_.end() ? id : found->second;
  }

  /// Appends the block to the current one, without a return; that stores its value in `returned` and goes to `end`, if
  /// there are such.
  void copy(const Block& block, Id returned, Id end) {
    for (const Instruction& original : block.code) {
      Instruction i = original;
      for_each_id(i, [&](Id& id) { id = mapped(id); });
      i.result = mapped(i.result);
      if (i.opcode == op_variable) {
        add_variable(std::move(i));
      } else if (i.opcode != op_return && i.opcode != op_return_value) {
        current_.code.push_back(std::move(i));
      } else if (end != 0) {
        if (i.opcode == op_return_value) current_.code.push_back({op_store, 0, 0, {returned, i.operands[0]}});
        current_.code.push_back({op_branch, 0, 0, {end}});
      }
    }
  }

  /// A call initializes its variables each time.
  void add_variable(Instruction i) {
    if (i.operands.size() > 1) {
      current_.code.push_back({op_store, 0, 0, {i.result, i.operands[1]}});
      i.operands.pop_back();
    }
    variables_.push_back(std::move(i));
  }
  Id variable_of(Id type) {
    variables_.push_back({op_variable, module_.type_pointer(type), module_.next_id(), {storage_function}});
    return variables_.back().result;
  }

  /// Control comes to phis from where a block ends now.
  void rename_ends(Block& block) {
    if (!own_.contains(block.label)) return;
    for (Instruction& i : block.code) {
      if (i.opcode != op_phi) return;
      for (std::size_t from = 1; from < i.operands.size(); from += 2) {
        const auto end = ends_.find(i.operands[from]);
        if (end != ends_.end()) i.operands[from] = end->second;
      }
    }
  }

  Module& module_;
  Function& function_;
  std::unordered_map<Id, Callee> callees_;
  Block current_;                    ///< which is being written
  std::unordered_map<Id, Id> ids_;   ///< of the callee: those of the copy
  std::unordered_map<Id, Id> ends_;  ///< of blocks by label: the block that their end is in now
  std::unordered_set<Id> own_;       ///< labels of the function's own blocks
  std::vector<Instruction> variables_;
  Replacements results_;  ///< of calls
  std::size_t size_ = 0;
};

}  // namespace

bool inline_calls(Module& module, Function& function) {
  return Inliner(module, function).run();
}

}  // namespace halfstep::vk::ir
