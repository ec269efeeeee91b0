#include <algorithm>
#include <unordered_map>
#include <utility>

#include "vk/optimize/flow.h"
#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"

namespace halfstep::vk::ir {
namespace {

constexpr std::size_t most_hoisted = 8;  // instructions of a selection

/// Whether an instruction takes about as long as a branch, and may run where nobody needs its result.
bool is_cheap(const Instruction& i) {
  const std::uint32_t op = i.opcode;
  const bool moves = (op >= op_vector_shuffle && op <= op_copy_object) || op == op_bitcast || op == op_select;
  const bool adds = op >= op_s_negate && op <= op_f_mul;
  const bool compares =
      (op >= op_logical_equal && op <= op_logical_not) || (op >= op_i_equal && op <= op_f_unord_greater_than_equal);
  const bool shifts = op >= op_shift_right_logical && op <= op_bitwise_not;
  return moves || adds || compares || shifts;
}

class Selector {
 public:
  Selector(Module& module, Function& function) : module_(module), function_(function), flow_(function) {
    for (std::uint32_t b = 0; b < function.blocks.size(); ++b) {
      for (const Instruction& i : function.blocks[b].code) {
        if (i.result != 0) blocks_[i.result] = b;
      }
    }
  }

  bool run() {
    bool any = false;
    for (const std::uint32_t b : flow_.order()) {
      if (flow_.predecessors(b).size() != 2 || !is_end_of_selection(b)) continue;
      if (may_hoist(b)) any |= hoist(b);
      any |= convert(b);
    }
    return any;
  }

 private:
  /// Whether the block is where the two ways of a selection meet again.
  bool is_end_of_selection(std::uint32_t b) const {
    const Block& header = function_.blocks[flow_.immediate_dominator(b)];
    const Instruction* merge = header.merge();
    return merge != nullptr && merge->opcode == op_selection_merge && merge->operands[0] == function_.blocks[b].label &&
           header.terminator().opcode == op_branch_conditional &&
           header.terminator().operands[1] != header.terminator().operands[2];
  }

  /// Whether it takes little to compute both ways before the selection, and nothing of it is left then.
  bool may_hoist(std::uint32_t b) const {
    const std::uint32_t header = flow_.immediate_dominator(b);
    std::size_t count = 0;
    for (const std::uint32_t side : flow_.predecessors(b)) {
      if (side == header) continue;
      const Block& block = function_.blocks[side];
      if (flow_.predecessors(side).size() != 1 || flow_.predecessors(side)[0] != header) return false;
      for (const Instruction& i : block.code) {
        if (&i != &block.terminator() && !is_cheap(i)) return false;
      }
      count += block.code.size() - 1;
    }
    const std::vector<Instruction>& code = function_.blocks[b].code;
    return count <= most_hoisted &&
           std::ranges::all_of(code, [&](const Instruction& i) { return i.opcode != op_phi || is_selectable(i.type); });
  }
  bool hoist(std::uint32_t b) {
    const std::uint32_t header = flow_.immediate_dominator(b);
    std::vector<Instruction> moved;
    for (const std::uint32_t side : flow_.predecessors(b)) {
      if (side == header) continue;
      std::vector<Instruction>& code = function_.blocks[side].code;
      for (auto i = code.begin(); i != code.end() - 1; ++i) blocks_[i->result] = header;
      moved.insert(moved.end(), std::make_move_iterator(code.begin()), std::make_move_iterator(code.end() - 1));
      code.erase(code.begin(), code.end() - 1);
    }
    std::vector<Instruction>& code = function_.blocks[header].code;
    code.insert(code.end() - 2, std::make_move_iterator(moved.begin()), std::make_move_iterator(moved.end()));
    return !moved.empty();
  }

  bool convert(std::uint32_t b) {
    const std::uint32_t header = flow_.immediate_dominator(b);
    std::vector<Instruction> phis;
    std::vector<Instruction> selects;
    std::vector<Instruction>& code = function_.blocks[b].code;
    std::size_t end = 0;
    for (; code[end].opcode == op_phi; ++end) {
      Instruction& phi = code[end];
      const auto [yes, no] = values(b, header, phi);
      if (yes == 0 || !is_known_at(yes, header) || !is_known_at(no, header) || !is_selectable(phi.type)) {
        phis.push_back(std::move(phi));
        continue;
      }
      const Id condition = condition_for(phi.type, function_.blocks[header].terminator().operands[0], selects);
      selects.push_back({op_select, phi.type, phi.result, {condition, yes, no}});
    }
    if (selects.empty()) {
      std::move(phis.begin(), phis.end(), code.begin());
      return false;
    }
    phis.insert(phis.end(), std::make_move_iterator(selects.begin()), std::make_move_iterator(selects.end()));
    code.erase(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(end));
    code.insert(code.begin(), std::make_move_iterator(phis.begin()), std::make_move_iterator(phis.end()));
    return true;
  }

  /// What the phi is where the condition holds, and where it does not; 0 if that is not told by where control comes
  /// from.
  std::pair<Id, Id> values(std::uint32_t b, std::uint32_t header, const Instruction& phi) const {
    const Instruction& terminator = function_.blocks[header].terminator();
    Id found[2] = {0, 0};
    for (std::size_t at = 0; at < phi.operands.size(); at += 2) {
      const std::uint32_t from = flow_.block_of(phi.operands[at + 1]);
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const std::uint32_t first = flow_.block_of(terminator.operands[1 + side]);
        const bool comes = first == b ? from == header : from != header && flow_.dominates(first, from);
        if (comes) found[side] = phi.operands[at];
      }
    }
    return found[1] == 0 ? std::pair<Id, Id>(0, 0) : std::pair(found[0], found[1]);
  }

  /// Whether a value is computed before the selection.
  bool is_known_at(Id value, std::uint32_t header) const {
    const auto found = blocks_.find(value);
    return found == blocks_.end() || (flow_.is_reachable(found->second) && flow_.dominates(found->second, header));
  }
  bool is_selectable(Id type) const {
    const std::uint32_t kind = module_.kind(type);
    return kind == op_type_bool || kind == op_type_int || kind == op_type_float || kind == op_type_vector;
  }

  /// Vectors are selected by vectors.
  Id condition_for(Id type, Id condition, std::vector<Instruction>& code) {
    if (module_.kind(type) != op_type_vector) return condition;
    const std::uint32_t count = *module_.parts(type);
    const Id of_vector = module_.type_bools(count);
    code.push_back({op_composite_construct, of_vector, module_.next_id(), std::vector<Id>(count, condition)});
    return code.back().result;
  }

  Module& module_;
  Function& function_;
  Flow flow_;
  std::unordered_map<Id, std::uint32_t> blocks_;  ///< that define values
};

}  // namespace

bool select(Module& module, Function& function) {
  return Selector(module, function).run();
}

}  // namespace halfstep::vk::ir
