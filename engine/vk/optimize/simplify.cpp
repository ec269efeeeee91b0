#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "vk/optimize/flow.h"
#include "vk/optimize/fold.h"
#include "vk/optimize/grammar.h"
#include "vk/optimize/passes.h"

namespace halfstep::vk::ir {
namespace {

/// Whether a pointer to such storage reads what nobody writes.
bool is_read_only(std::uint32_t storage) {
  constexpr std::uint32_t uniform_constant = 0;
  constexpr std::uint32_t input = 1;
  return storage == uniform_constant || storage == input || storage == storage_push_constant;
}

class Simplifier {
 public:
  Simplifier(Module& module, Function& function) : module_(module), function_(function), flow_(function) {}

  void run() {
    for (const std::uint32_t b : flow_.tree()) {
      std::vector<Instruction>& code = function_.blocks[b].code;
      for (Instruction& i : code) {
        if (i.opcode != op_phi) for_each_id(i, [&](Id& id) { id = others_(id); });
        if (i.result == 0) continue;
        if (!simplify(i)) number(b, i);
        if (others_(i.result) == i.result) definitions_[i.result] = i;
      }
      std::erase_if(code, [&](const Instruction& i) { return i.result != 0 && others_(i.result) != i.result; });
    }
    others_.apply(function_);
  }

 private:
  /// Whether the value has the type of the instruction.
  Id type_of(Id id) const {
    if (const Instruction* i = module_.global(id)) return i->type;
    const Instruction* i = definition(id);
    return i == nullptr ? 0 : i->type;
  }
  const Instruction* definition(Id id) const {
    const auto found = definitions_.find(id);
    return found == definitions_.end() ? nullptr : &found->second;
  }

  bool becomes(const Instruction& i, Id other) {
    if (other == 0 || other == i.result || type_of(other) != i.type) return false;
    others_.add(i.result, other);
    return true;
  }

  /// Puts something simpler in the place of the instruction: another value (then true), or another instruction.
  bool simplify(Instruction& i) {
    if (effect_of(i) != Effect::pure) return false;
    bool all = true;
    for_each_id(
        i, [&](Id id) { all = all && (module_.is_constant(id) || (i.opcode == op_ext_inst && id == i.operands[0])); });
    if (all && becomes(i, folded(module_, i))) return true;
    if (i.opcode == op_composite_extract) return extract(i);
    if (i.opcode == op_composite_construct) return becomes(i, source_of_construct(i));
    if (i.opcode == op_composite_insert) return construct_of_inserts(i);
    if (i.opcode == op_vector_shuffle) return becomes(i, source_of_shuffle(i));
    if (i.opcode == op_copy_object) return becomes(i, i.operands[0]);
    if (i.opcode == op_select) return select(i);
    if (i.opcode == op_bitcast) return bitcast(i);
    if (i.opcode == op_logical_not) return logical_not(i);
    return becomes(i, simpler(module_, i));
  }

  bool select(const Instruction& i) {
    const auto condition = module_.bits(i.operands[0]);
    if (condition) return becomes(i, i.operands[*condition != 0 ? 1 : 2]);
    return i.operands[1] == i.operands[2] && becomes(i, i.operands[1]);
  }
  bool bitcast(Instruction& i) {
    const Instruction* inner = definition(i.operands[0]);
    if (inner != nullptr && inner->opcode == op_bitcast) i.operands[0] = inner->operands[0];
    return becomes(i, i.operands[0]);
  }
  bool logical_not(const Instruction& i) {
    const Instruction* inner = definition(i.operands[0]);
    return inner != nullptr && inner->opcode == op_logical_not && becomes(i, inner->operands[0]);
  }

  /// Follows the component to where it was put into the composite.
  bool extract(Instruction& i) {
    while (i.operands.size() > 1 && step_into(i)) {
    }
    return i.operands.size() == 1 && becomes(i, i.operands[0]);
  }
  /// Whether the composite is known to be made of others; the instruction then names the one that it reads from.
  bool step_into(Instruction& i) {
    const Instruction* whole = definition(i.operands[0]);
    if (whole == nullptr) return step_into_constant(i);
    switch (whole->opcode) {
      case op_composite_construct:
        return step_into_construct(i, *whole);
      case op_composite_insert: {
        const std::size_t depth = whole->operands.size() - 2;
        const std::size_t common = std::min(depth, i.operands.size() - 1);
        const bool same =
            std::equal(whole->operands.begin() + 2, whole->operands.begin() + 2 + static_cast<std::ptrdiff_t>(common),
                       i.operands.begin() + 1);
        if (same && common < depth) return false;  // of which a part was changed
        const Id from = same ? whole->operands[0] : whole->operands[1];
        if (same) i.operands.erase(i.operands.begin() + 1, i.operands.begin() + 1 + static_cast<std::ptrdiff_t>(depth));
        i.operands[0] = from;
        return true;
      }
      case op_vector_shuffle: {
        const auto first = module_.parts(type_of(whole->operands[0]));
        if (!first || i.operands[1] + std::size_t{2} >= whole->operands.size()) return false;
        const std::uint32_t component = whole->operands[2 + i.operands[1]];
        if (component == 0xffffffff) return false;  // undefined
        i.operands[0] = whole->operands[component < *first ? 0 : 1];
        i.operands[1] = component < *first ? component : component - *first;
        return true;
      }
      case op_composite_extract:
        i.operands.insert(i.operands.begin() + 1, whole->operands.begin() + 1, whole->operands.end());
        i.operands[0] = whole->operands[0];
        return true;
      default:
        return false;
    }
  }
  bool step_into_constant(Instruction& i) {
    if (!module_.is_constant(i.operands[0])) return false;
    const Id part = constituent(module_, i.operands[0], i.operands[1]);
    if (part == 0) return false;
    i.operands[0] = part;
    i.operands.erase(i.operands.begin() + 1);
    return true;
  }
  bool step_into_construct(Instruction& i, const Instruction& whole) {
    std::uint32_t index = i.operands[1];
    const bool is_vector = module_.kind(whole.type) == op_type_vector;
    for (const Id operand : whole.operands) {
      const Id type = type_of(operand);
      if (type == 0) return false;
      const std::uint32_t width =
          is_vector && module_.kind(type) == op_type_vector ? module_.parts(type).value_or(1) : 1;
      if (index >= width) {
        index -= width;
        continue;
      }
      i.operands[0] = operand;
      if (width > 1 || (is_vector && module_.kind(type) == op_type_vector)) {
        i.operands[1] = index;
      } else {
        i.operands.erase(i.operands.begin() + 1);
      }
      return true;
    }
    return false;
  }

  /// The composite whose parts, in order, the instruction puts together again.
  Id source_of_construct(const Instruction& i) const {
    if (i.operands.size() != module_.parts(i.type)) return 0;
    Id source = 0;
    for (std::uint32_t at = 0; at < i.operands.size(); ++at) {
      const Instruction* part = definition(i.operands[at]);
      const bool fits = part != nullptr && part->opcode == op_composite_extract && part->operands.size() == 2 &&
                        part->operands[1] == at && (at == 0 || part->operands[0] == source);
      if (!fits) return 0;
      source = part->operands[0];
    }
    return source;
  }
  Id source_of_shuffle(const Instruction& i) const {
    for (std::uint32_t at = 2; at < i.operands.size(); ++at) {
      if (i.operands[at] != at - 2) return 0;
    }
    return i.operands[0];
  }

  /// Makes one construct of a vector whose components are all inserted, one after the other.
  bool construct_of_inserts(Instruction& i) {
    if (module_.kind(i.type) != op_type_vector || i.operands.size() != 3) return false;
    std::vector<Id> parts(*module_.parts(i.type), 0);
    std::size_t missing = parts.size();
    for (const Instruction* insert = &i; missing > 0; insert = definition(insert->operands[1])) {
      const bool fits = insert != nullptr && insert->opcode == op_composite_insert && insert->operands.size() == 3 &&
                        insert->operands[2] < parts.size();
      if (!fits) return false;
      Id& part = parts[insert->operands[2]];
      if (part == 0) --missing;
      if (part == 0) part = insert->operands[0];
    }
    i = {op_composite_construct, i.type, i.result, std::move(parts)};
    return becomes(i, source_of_construct(i));
  }

  /// Finds the value among those that were computed before, on all ways to this block.
  void number(std::uint32_t b, const Instruction& i) {
    const bool constant_load = i.opcode == op_load && i.operands.size() == 1 && points_to_read_only(i.operands[0]);
    if (effect_of(i) != Effect::pure && !constant_load) return;
    std::vector<std::uint32_t> key{i.opcode, i.type};
    key.insert(key.end(), i.operands.begin(), i.operands.end());
    add_decorations(i.result, key);
    const auto [entry, is_new] = numbers_.emplace(std::move(key), std::pair(i.result, b));
    if (is_new) return;
    if (flow_.dominates(entry->second.second, b)) {
      becomes(i, entry->second.first);
    } else {
      entry->second = {i.result, b};
    }
  }
  /// What is decorated otherwise is another value.
  void add_decorations(Id id, std::vector<std::uint32_t>& key) const {
    const auto found = module_.decorations.find(id);
    if (found == module_.decorations.end()) return;
    for (const Instruction& decoration : found->second) {
      key.push_back(decoration.opcode);
      key.insert(key.end(), decoration.operands.begin() + 1, decoration.operands.end());
    }
  }
  bool points_to_read_only(Id pointer) const {
    const Instruction* type = module_.global(type_of(pointer));
    return type != nullptr && type->opcode == op_type_pointer && is_read_only(type->operands[0]);
  }

  Module& module_;
  Function& function_;
  Flow flow_;
  Replacements others_;
  std::unordered_map<Id, Instruction> definitions_;
  std::map<std::vector<std::uint32_t>, std::pair<Id, std::uint32_t>> numbers_;  ///< values, and their blocks
};

}  // namespace

void simplify(Module& module, Function& function) {
  Simplifier(module, function).run();
}

}  // namespace halfstep::vk::ir
