#include <algorithm>

#include "vk/optimize/fold.h"
#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"

namespace halfstep::vk::ir {
namespace {

class Freezer {
 public:
  Freezer(Module& module, const Constants& constants) : module_(module), constants_(constants) {}

  void run() {
    take_numbers();
    for (Instruction& i : module_.take_globals()) {
      if (i.type != 0) i.type = others_(i.type);
      for_each_id(i, [&](Id& id) { id = others_(id); });
      freeze(i);
      const Id id = i.result;
      if (i.opcode == op_spec_constant_op && !module_.decorations.contains(id)) {
        const Id constant = computed(i);
        if (constant != 0) {
          others_.add(id, constant);
          continue;
        }
      }
      if (i.opcode == op_type_forward_pointer) {
        module_.append_global(std::move(i));
      } else {
        others_.add(id, module_.add_global(std::move(i)));
      }
    }
    for (Function& f : module_.functions) others_.apply(f);
    replace(module_.preamble);
    for (auto& [id, decorations] : module_.decorations) replace(decorations);
  }

 private:
  void replace(std::vector<Instruction>& instructions) const {
    for (Instruction& i : instructions) for_each_id(i, [&](Id& id) { id = others_(id); });
  }

  /// Takes the numbers of specialization constants out of the decorations.
  void take_numbers() {
    for (auto& [id, decorations] : module_.decorations) {
      for (const Instruction& i : decorations) {
        if (is_number(i)) numbers_[id] = i.operands[2];
      }
      std::erase_if(decorations, is_number);
    }
    std::erase_if(module_.decorations, [](const auto& entry) { return entry.second.empty(); });
  }
  static bool is_number(const Instruction& i) {
    return i.opcode == op_decorate && i.operands.size() == 3 && i.operands[1] == decoration_spec_id;
  }

  /// Makes a constant of a specialization constant, but for the operations.
  void freeze(Instruction& i) const {
    const auto number = numbers_.find(i.result);
    const auto given = number == numbers_.end() ? constants_.end() : constants_.find(number->second);
    const bool is_given = given != constants_.end();
    if (i.opcode == op_spec_constant) {
      i.opcode = op_constant;
      if (is_given && i.operands.size() == 1) i.operands[0] = given->second;  // longer ones keep what they have
    }
    if (i.opcode == op_spec_constant_true || i.opcode == op_spec_constant_false) {
      const bool value = is_given ? given->second != 0 : i.opcode == op_spec_constant_true;
      i.opcode = value ? op_constant_true : op_constant_false;
    }
    if (i.opcode == op_spec_constant_composite) i.opcode = op_constant_composite;
  }

  Id computed(const Instruction& i) {
    const bool constant = all_constants(i);
    Instruction inner{i.operands[0], i.type, i.result, {i.operands.begin() + 1, i.operands.end()}};
    return constant ? folded(module_, inner) : 0;
  }
  bool all_constants(const Instruction& i) const {
    bool all = true;
    for_each_id(i, [&](Id id) { all = all && module_.is_constant(id); });
    return all;
  }

  Module& module_;
  const Constants& constants_;
  std::map<Id, std::uint32_t> numbers_;
  Replacements others_;
};

}  // namespace

void freeze(Module& module, const Constants& constants) {
  Freezer(module, constants).run();
}

}  // namespace halfstep::vk::ir
