#include "vk/optimize/well_formed.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "vk/optimize/grammar.h"

namespace halfstep::vk::ir {
namespace {

bool is_type(std::uint32_t opcode) {
  return (opcode >= op_type_void && opcode <= op_type_function) || opcode == op_type_cooperative_matrix;
}

bool is_constant(std::uint32_t opcode) {
  return opcode >= op_constant_true && opcode <= op_spec_constant_op;
}

bool is_glsl(const Instruction& import) {
  constexpr std::string_view name = "GLSL.std.450";
  return import.operands.size() * sizeof(std::uint32_t) > name.size() &&
         std::memcmp(import.operands.data(), name.data(), name.size() + 1) == 0;
}

/// Where an id may be used: anywhere, or in one function.
enum : std::uint32_t { undefined = 0, everywhere = 1, first_function = 2 };

class Checker {
 public:
  explicit Checker(const Module& module)
      : module_(module), scopes_(module.bound(), undefined), definitions_(module.bound(), nullptr) {}

  bool check(std::span<const Instruction> globals) {
    for (const Instruction& i : module_.preamble) {
      if (i.opcode == op_ext_inst_import && (!is_glsl(i) || !define(i, everywhere))) return false;
    }
    for (const Instruction& i : globals) {
      if (!check_global(i)) return false;
    }
    if (!std::ranges::all_of(forward_, [&](Id id) { return opcode_of(id) == op_type_pointer; })) return false;
    for (const Function& f : module_.functions) {
      if (!define(f.head, everywhere)) return false;
    }
    for (std::size_t f = 0; f < module_.functions.size(); ++f) {
      if (!define_in(module_.functions[f], first_function + static_cast<std::uint32_t>(f))) return false;
    }
    for (std::size_t f = 0; f < module_.functions.size(); ++f) {
      if (!check_function(module_.functions[f], first_function + static_cast<std::uint32_t>(f))) return false;
    }
    return check_preamble();
  }

 private:
  bool define(const Instruction& i, std::uint32_t scope) {
    if (i.result == 0 || i.result >= scopes_.size() || scopes_[i.result] != undefined) return false;
    scopes_[i.result] = scope;
    definitions_[i.result] = &i;
    return true;
  }
  bool may_use(Id id, std::uint32_t scope) const {
    return id < scopes_.size() && (scopes_[id] == everywhere || (scopes_[id] != undefined && scopes_[id] == scope));
  }
  std::uint32_t opcode_of(Id id) const {
    return id < definitions_.size() && definitions_[id] != nullptr ? definitions_[id]->opcode : 0;
  }

  bool check_global(const Instruction& i) {
    if (i.opcode == op_type_forward_pointer) forward_.insert(i.operands[0]);
    if (i.opcode == op_type_forward_pointer) return true;
    if (forward_.contains(i.result) && i.opcode != op_type_pointer) return false;
    if (i.type != 0 && !is_type(opcode_of(i.type))) return false;
    if (i.opcode == op_variable && opcode_of(i.type) != op_type_pointer) return false;
    bool known = true;
    visit_ids(i, grammar(i.opcode).operands, 0, [&](std::size_t at) {
      const bool forward = i.opcode == op_type_pointer;  // what it points to may follow
      const bool number = (i.opcode == op_type_array && at == 1) || (i.opcode == op_type_cooperative_matrix && at > 0);
      const Id id = i.operands[at];
      if (id >= scopes_.size() || (!forward && scopes_[id] != everywhere && !is_forward_pointer(i, id))) known = false;
      if (known && is_type(i.opcode) && !forward && !number)
        known = is_type(opcode_of(id)) || is_forward_pointer(i, id);
      if (known && (number || (is_constant(i.opcode) && i.opcode != op_spec_constant_op)))
        known = opcode_of(id) == op_undef || is_constant(opcode_of(id));
    });
    if (i.opcode == op_type_vector || i.opcode == op_type_matrix)
      known = known && i.operands[1] >= 2 && i.operands[1] <= 4;
    if (i.opcode == op_type_function) known = known && !i.operands.empty();
    const bool is_number = i.opcode == op_constant || i.opcode == op_spec_constant;
    return known && (!is_number || (!i.operands.empty() && i.operands.size() <= 2)) && define(i, everywhere);
  }
  /// A structure may have pointers to what follows it.
  bool is_forward_pointer(const Instruction& i, Id id) const {
    return i.opcode == op_type_struct && forward_.contains(id);
  }

  bool define_in(const Function& f, std::uint32_t scope) {
    if (f.blocks.empty()) return false;
    for (const Instruction& parameter : f.parameters) {
      if (!define(parameter, scope)) return false;
    }
    for (const Block& block : f.blocks) {
      if (block.label == 0 || block.label >= scopes_.size() || scopes_[block.label] != undefined) return false;
      scopes_[block.label] = scope;
      labels_.resize(scopes_.size());
      labels_[block.label] = true;
      for (const Instruction& i : block.code) {
        if (i.result != 0 && !define(i, scope)) return false;
      }
    }
    return true;
  }

  bool check_function(const Function& f, std::uint32_t scope) const {
    const Instruction* type = f.head.operands[1] < definitions_.size() ? definitions_[f.head.operands[1]] : nullptr;
    if (type == nullptr || type->opcode != op_type_function || type->operands[0] != f.head.type) return false;
    if (type->operands.size() != f.parameters.size() + 1) return false;
    for (const Block& block : f.blocks) {
      bool phis = true;
      for (std::size_t at = 0; at < block.code.size(); ++at) {
        const Instruction& i = block.code[at];
        const std::size_t left = block.code.size() - at;
        phis = phis && i.opcode == op_phi;
        const bool merge = i.opcode == op_selection_merge || i.opcode == op_loop_merge;
        if ((i.opcode == op_phi && !phis) || (merge && left != 2) || is_global_only(i)) return false;
        if (i.opcode == op_variable && &block != &f.blocks.front()) return false;
        if (!check_operands(i, scope) || !check_labels(f, i) || !check_call(f, i)) return false;
      }
      if (block.code.empty()) return false;
    }
    return true;
  }
  static bool is_global_only(const Instruction& i) {
    if (i.opcode == op_variable || i.opcode == op_undef) return false;
    return is_global(i.opcode) || is_preamble(i.opcode) || i.opcode == op_function;
  }

  bool check_operands(const Instruction& i, std::uint32_t scope) const {
    if (i.type != 0 && !is_type(opcode_of(i.type))) return false;
    if (i.opcode == op_variable && opcode_of(i.type) != op_type_pointer) return false;
    bool known = true;
    for_each_id(i, [&](Id id) { known = known && may_use(id, scope); });
    return known;
  }

  /// Blocks where blocks must be, and nowhere else.
  bool check_labels(const Function& f, const Instruction& i) const {
    if (i.opcode == op_phi && i.operands.size() % 2 != 0) return false;
    bool right = true;
    std::size_t count = 0;
    for_each_id(i, [&](Id id) {
      const bool merge = i.opcode == op_selection_merge || i.opcode == op_loop_merge;
      const bool jump =
          i.opcode == op_branch || (i.opcode >= op_branch_conditional && i.opcode <= op_switch && count > 0);
      const bool wanted = merge || jump || (i.opcode == op_phi && count % 2 == 1);
      right = right && labels_[id] == wanted && (!(merge || jump) || id != f.blocks.front().label);
      ++count;
    });
    if (i.opcode != op_switch || !right) return right;
    const Instruction* selector = definitions_[i.operands[0]];  // other widths have cases of other lengths
    return selector != nullptr && opcode_of(selector->type) == op_type_int &&
           definitions_[selector->type]->operands[0] == 32;
  }

  bool check_call(const Function& f, const Instruction& i) const {
    const bool returns_value = i.opcode == op_return_value;
    if (returns_value || i.opcode == op_return) return (opcode_of(f.head.type) != op_type_void) == returns_value;
    if (i.opcode == op_ext_inst) return opcode_of(i.operands[0]) == op_ext_inst_import;
    if (i.opcode != op_function_call) return true;
    const auto called =
        std::ranges::find(module_.functions, i.operands[0], [](const Function& g) { return g.head.result; });
    return called != module_.functions.end() && called->parameters.size() + 1 == i.operands.size() &&
           called->head.type == i.type;
  }

  bool check_preamble() const {
    for (const Instruction& i : module_.preamble) {
      bool known = true;
      for_each_id(i, [&](Id id) { known = known && may_use(id, everywhere); });
      if (!known || (i.opcode == op_entry_point && opcode_of(i.operands[1]) != op_function)) return false;
    }
    for (const auto& [id, decorations] : module_.decorations) {
      if (id >= scopes_.size() || scopes_[id] == undefined) return false;
      for (const Instruction& i : decorations) {
        bool known = true;
        if (i.opcode == op_decorate_id) for_each_id(i, [&](Id used) { known = known && may_use(used, scopes_[id]); });
        if (!known) return false;
      }
    }
    return true;
  }

  const Module& module_;
  std::vector<std::uint32_t> scopes_;            ///< of each id
  std::vector<const Instruction*> definitions_;  ///< of each id but labels
  std::vector<bool> labels_;
  std::set<Id> forward_;  ///< pointers that are declared before what they point to
};

}  // namespace

bool is_global(std::uint32_t opcode) {
  return is_type(opcode) || is_constant(opcode) || opcode == op_undef || opcode == op_variable ||
         opcode == op_type_forward_pointer;
}

bool is_preamble(std::uint32_t opcode) {
  return (opcode >= op_extension && opcode <= op_capability && opcode != op_ext_inst) || opcode == op_execution_mode_id;
}

bool is_well_formed(const Module& module, std::span<const Instruction> globals) {
  return Checker(module).check(globals);
}

}  // namespace halfstep::vk::ir
