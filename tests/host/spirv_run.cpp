#include "spirv_run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "vk/optimize/module.h"

using namespace halfstep::vk;

namespace {

using ir::Id;
using ir::Instruction;  // vk has one, too

using Words = std::vector<std::uint32_t>;

std::int32_t as_signed(std::uint32_t bits) {
  return static_cast<std::int32_t>(bits);
}

/// Of a pointer: the variable's number, and the first of its words.
struct Pointer {
  std::size_t variable = 0;
  std::size_t at = 0;
};

class Machine {
 public:
  Machine(ir::Module module, const ir::Constants& constants) : module_(std::move(module)) {
    for (const Instruction& i : module_.globals()) define_global(i, constants);
  }

  Words run() {
    for (const Instruction& i : module_.preamble) {
      if (i.opcode == op_entry_point) call(i.operands[1], {}, {});
    }
    return out_ < memory_.size() ? memory_[out_] : Words(out_words, 0);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::size_t out_words = 64;
  struct Frame {
    std::map<Id, Words> values;
    std::map<Id, Pointer> pointers;
  };

  std::size_t size(Id type) const {
    const Instruction& i = *module_.global(type);
    if (i.opcode == op_type_vector) return i.operands[1];
    if (i.opcode == op_type_array) return size(i.operands[0]) * values_.at(i.operands[1])[0];
    if (i.opcode == op_type_runtime_array) return out_words;
    std::size_t sum = i.opcode == op_type_struct ? 0 : 1;
    for (std::size_t part = 0; i.opcode == op_type_struct && part < i.operands.size(); ++part)
      sum += size(i.operands[part]);
    return sum;
  }
  /// Where a part of a type begins; `type` becomes that of the part.
  std::size_t step(Id& type, std::size_t index) const {
    const Instruction& i = *module_.global(type);
    std::size_t at = 0;
    if (i.opcode == op_type_struct) {
      for (std::size_t before = 0; before < index; ++before) at += size(i.operands[before]);
      type = i.operands[index];
      return at;
    }
    type = i.operands[0];
    return index * size(type);
  }

  void define_global(const Instruction& i, const ir::Constants& constants) {
    const auto given = [&](std::uint32_t otherwise) {
      for (const Instruction& decoration : module_.decorations[i.result]) {
        if (decoration.operands[1] == decoration_spec_id && constants.contains(decoration.operands[2]))
          return constants.at(decoration.operands[2]);
      }
      return otherwise;
    };
    if (i.opcode == op_constant) values_[i.result] = i.operands;
    if (i.opcode == op_spec_constant) values_[i.result] = {given(i.operands[0])};
    if (i.opcode == op_constant_true || i.opcode == op_constant_false)
      values_[i.result] = {i.opcode == op_constant_true};
    if (i.opcode == op_spec_constant_true || i.opcode == op_spec_constant_false)
      values_[i.result] = {given(i.opcode == op_spec_constant_true) != 0};
    if (i.opcode == op_constant_null || i.opcode == op_undef) values_[i.result] = Words(size(i.type), 0);
    if (i.opcode == op_constant_composite || i.opcode == op_spec_constant_composite) values_[i.result] = joined(i, 0);
    if (i.opcode == op_spec_constant_op)
      values_[i.result] = computed({i.operands[0], i.type, i.result, {i.operands.begin() + 1, i.operands.end()}}, {});
    if (i.opcode != op_variable) return;
    const Id type = module_.global(i.type)->operands[1];
    pointers_[i.result] = {memory_.size(), 0};
    if (i.operands[0] != storage_private && out_ == none) out_ = memory_.size();
    memory_.push_back(i.operands.size() > 1 ? values_.at(i.operands[1]) : Words(size(type), 0));
  }

  const Words& value(const Frame& frame, Id id) const {
    const auto local = frame.values.find(id);
    return local != frame.values.end() ? local->second : values_.at(id);
  }
  Pointer pointer(const Frame& frame, Id id) const {
    const auto local = frame.pointers.find(id);
    return local != frame.pointers.end() ? local->second : pointers_.at(id);
  }
  Words joined(const Instruction& i, std::size_t first, const Frame& frame = {}) const {
    Words all;
    for (std::size_t part = first; part < i.operands.size(); ++part) {
      const Words& words = value(frame, i.operands[part]);
      all.insert(all.end(), words.begin(), words.end());
    }
    return all;
  }

  std::uint32_t number(const Instruction& i, const Frame& frame) const {
    const auto operand = [&](std::size_t at) { return at < i.operands.size() ? value(frame, i.operands[at])[0] : 0; };
    const std::uint32_t a = operand(0);
    const std::uint32_t b = operand(1);
    switch (i.opcode) {
      case op_i_add:
        return a + b;
      case op_i_sub:
        return a - b;
      case op_i_mul:
        return a * b;
      case op_s_div:
        return static_cast<std::uint32_t>(as_signed(a) / as_signed(b));
      case op_u_mod:
        return a % b;
      case op_bitwise_and:
        return a & b;
      case op_bitwise_or:
        return a | b;
      case op_bitwise_xor:
        return a ^ b;
      case op_shift_left:
        return a << b;
      case op_shift_right_logical:
        return a >> b;
      case op_i_equal:
        return a == b;
      case op_i_not_equal:
        return a != b;
      case op_s_less_than:
        return as_signed(a) < as_signed(b);
      case op_u_greater_than:
        return a > b;
      case op_logical_and:
        return a & b;
      case op_logical_or:
        return a | b;
      case op_logical_not:
        return 1 - a;
      case op_bitcast:
      case op_copy_object:
        return a;
      default:
        FAIL("an instruction that is not known: ", i.opcode);
    }
    return 0;
  }

  Words computed(const Instruction& i, const Frame& frame) const {
    if (i.opcode == op_undef) return Words(size(i.type), 0);
    if (i.opcode == op_select) return value(frame, i.operands[value(frame, i.operands[0])[0] != 0 ? 1 : 2]);
    if (i.opcode == op_composite_construct) return joined(i, 0, frame);
    if (i.opcode == op_copy_object) return value(frame, i.operands[0]);
    if (i.opcode == op_composite_extract || i.opcode == op_composite_insert) return extracted(i, frame);
    return {number(i, frame)};
  }
  Words extracted(const Instruction& i, const Frame& frame) const {
    const bool inserts = i.opcode == op_composite_insert;
    Words whole = value(frame, i.operands[inserts ? 1 : 0]);
    Id type = type_of(i.operands[inserts ? 1 : 0]);
    std::size_t at = 0;
    for (std::size_t index = inserts ? 2 : 1; index < i.operands.size(); ++index) at += step(type, i.operands[index]);
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(at);
    if (!inserts) return {first, first + static_cast<std::ptrdiff_t>(size(type))};
    const Words& part = value(frame, i.operands[0]);
    std::copy(part.begin(), part.end(), first);
    return whole;
  }
  Id type_of(Id id) const {
    if (const Instruction* i = module_.global(id)) return i->type;
    return types_.at(id);
  }

  void access(const Instruction& i, Frame& frame) {
    Id type = module_.global(type_of(i.operands[0]))->operands[1];
    Pointer to = pointer(frame, i.operands[0]);
    for (std::size_t index = 1; index < i.operands.size(); ++index)
      to.at += step(type, value(frame, i.operands[index])[0]);
    frame.pointers[i.result] = to;
  }

  void execute(const Instruction& i, Frame& frame) {
    types_[i.result] = i.type;
    if (i.opcode == op_variable) {
      frame.pointers[i.result] = {memory_.size(), 0};
      const std::size_t words = size(module_.global(i.type)->operands[1]);
      memory_.push_back(i.operands.size() > 1 ? value(frame, i.operands[1]) : Words(words, 0));
    } else if (i.opcode == op_access_chain) {
      access(i, frame);
    } else if (i.opcode == op_load) {
      const Pointer from = pointer(frame, i.operands[0]);
      const auto first = memory_[from.variable].begin() + static_cast<std::ptrdiff_t>(from.at);
      frame.values[i.result] = {first, first + static_cast<std::ptrdiff_t>(size(i.type))};
    } else if (i.opcode == op_store) {
      const Pointer to = pointer(frame, i.operands[0]);
      const Words& words = value(frame, i.operands[1]);
      std::copy(words.begin(), words.end(), memory_[to.variable].begin() + static_cast<std::ptrdiff_t>(to.at));
    } else if (i.opcode == op_function_call) {
      frame.values[i.result] = call(i.operands[0], i, frame);
    } else if (i.opcode != op_selection_merge && i.opcode != op_loop_merge) {
      frame.values[i.result] = computed(i, frame);
    }
  }

  Words call(Id function, const Instruction& by, const Frame& caller) {
    const auto f = std::ranges::find(module_.functions, function, [](const ir::Function& g) { return g.head.result; });
    Frame frame;
    for (std::size_t p = 0; p < f->parameters.size(); ++p) {
      const Id argument = by.operands[p + 1];
      types_[f->parameters[p].result] = f->parameters[p].type;
      if (module_.kind(f->parameters[p].type) == op_type_pointer) {
        frame.pointers[f->parameters[p].result] = pointer(caller, argument);
      } else {
        frame.values[f->parameters[p].result] = value(caller, argument);
      }
    }
    Id from = 0;
    Id at = f->blocks.front().label;
    for (int blocks = 0; blocks < 100000; ++blocks) {
      const auto block = std::ranges::find(f->blocks, at, [](const ir::Block& b) { return b.label; });
      enter(*block, from, frame);
      const Instruction& end = block->terminator();
      from = at;
      if (end.opcode == op_return) return {};
      if (end.opcode == op_return_value) return value(frame, end.operands[0]);
      at = next(end, frame);
    }
    FAIL("expected an end");
    return {};
  }
  void enter(const ir::Block& block, Id from, Frame& frame) {
    std::map<Id, Words> phis;  // together
    for (const Instruction& i : block.code) {
      if (i.opcode != op_phi) break;
      types_[i.result] = i.type;
      for (std::size_t at = 0; at < i.operands.size(); at += 2) {
        if (i.operands[at + 1] == from) phis[i.result] = value(frame, i.operands[at]);
      }
    }
    for (auto& [id, words] : phis) frame.values[id] = words;
    for (const Instruction& i : block.code) {
      if (&i != &block.terminator() && i.opcode != op_phi) execute(i, frame);
    }
  }
  Id next(const Instruction& end, const Frame& frame) const {
    if (end.opcode == op_branch) return end.operands[0];
    REQUIRE((end.opcode == op_branch_conditional || end.opcode == op_switch));
    const std::uint32_t condition = value(frame, end.operands[0])[0];
    if (end.opcode == op_branch_conditional) return end.operands[condition != 0 ? 1 : 2];
    for (std::size_t at = 2; at < end.operands.size(); at += 2) {
      if (end.operands[at] == condition) return end.operands[at + 1];
    }
    return end.operands[1];
  }

  ir::Module module_;
  std::map<Id, Words> values_;
  std::map<Id, Pointer> pointers_;
  std::map<Id, Id> types_;
  std::vector<Words> memory_;
  std::size_t out_ = none;  ///< the first buffer
};

}  // namespace

std::vector<std::uint32_t> run_shader(std::span<const std::uint32_t> words, const ir::Constants& constants) {
  std::optional<ir::Module> module = ir::read(words);
  REQUIRE(module);
  return Machine(std::move(*module), constants).run();
}
