#include "vk/optimize/module.h"

#include <algorithm>

#include "vk/optimize/grammar.h"

namespace halfstep::vk::ir {

std::vector<Instruction> Module::take_globals() {
  places_.clear();
  constants_.clear();
  return std::exchange(globals_, {});
}

void Module::append_global(Instruction i) {
  const Id id = i.result;
  globals_.push_back(std::move(i));
  if (id >= places_.size()) places_.resize(std::max<std::size_t>(bound(), id + 1));
  places_[id] = static_cast<std::uint32_t>(globals_.size());
}

Id Module::add_global(Instruction i) {
  const Id id = i.result;
  const bool shared = i.opcode >= op_constant_true && i.opcode <= op_constant_null && !decorations.contains(id);
  if (shared) {
    std::vector<std::uint32_t> key{i.opcode};
    key.insert(key.end(), i.operands.begin(), i.operands.end());
    const auto [entry, is_new] = constants_.emplace(std::pair(i.type, std::move(key)), id);
    if (!is_new) return entry->second;
  }
  append_global(std::move(i));
  return id;
}

Id Module::constant(Id type, std::uint32_t bits) {
  if (kind(type) == op_type_bool)
    return add_global({bits != 0 ? op_constant_true : op_constant_false, type, next_id()});
  return add_global({op_constant, type, next_id(), {bits}});
}

Id Module::composite(Id type, std::span<const Id> constituents) {
  return add_global({op_constant_composite, type, next_id(), {constituents.begin(), constituents.end()}});
}

Id Module::undefined(Id type) {
  const auto [entry, is_new] = constants_.emplace(std::pair(type, std::vector<std::uint32_t>{op_undef}), 0);
  if (is_new) entry->second = add_global({op_undef, type, next_id()});
  return entry->second;
}

Id Module::type(std::uint32_t opcode, std::vector<std::uint32_t> operands) {
  const auto found = std::ranges::find_if(
      globals_, [&](const Instruction& i) { return i.opcode == opcode && i.operands == operands; });
  return found != globals_.end() ? found->result : add_global({opcode, 0, next_id(), std::move(operands)});
}

Id Module::type_u32() {
  return type(op_type_int, {32, 0});
}

Id Module::type_bools(std::uint32_t count) {
  return type(op_type_vector, {type(op_type_bool, {}), count});
}

Id Module::type_pointer(Id to) {
  return type(op_type_pointer, {storage_function, to});
}

std::optional<std::uint32_t> Module::bits(Id constant) const {
  const Instruction* i = global(constant);
  if (i == nullptr) return std::nullopt;
  if (i->opcode == op_constant_true) return 1;
  if (i->opcode == op_constant_false) return 0;
  const std::uint32_t of = kind(i->type);
  const bool fits =
      of == op_type_bool || ((of == op_type_int || of == op_type_float) && global(i->type)->operands[0] == 32);
  if (i->opcode == op_constant_null && fits) return 0;
  if (i->opcode == op_constant && fits && of != op_type_bool) return i->operands[0];
  return std::nullopt;
}

bool Module::is_constant(Id id) const {
  const Instruction* i = global(id);
  return i != nullptr && i->opcode >= op_constant_true && i->opcode <= op_constant_null;
}

std::uint32_t Module::kind(Id type) const {
  const Instruction* i = global(type);
  return i == nullptr ? 0 : i->opcode;
}

bool Module::is_int32(Id type) const {
  return kind(type) == op_type_int && global(type)->operands[0] == 32;
}

std::optional<std::uint32_t> Module::parts(Id type) const {
  const Instruction* i = global(type);
  if (i == nullptr) return std::nullopt;
  if (i->opcode == op_type_vector || i->opcode == op_type_matrix) return i->operands[1];
  if (i->opcode == op_type_struct) return static_cast<std::uint32_t>(i->operands.size());
  if (i->opcode == op_type_array) return bits(i->operands[1]);
  return std::nullopt;
}

Id Module::part(Id type, std::uint32_t index) const {
  const Instruction* i = global(type);
  return i->operands[i->opcode == op_type_struct ? index : 0];
}

void Module::copy_decorations(Id original, Id copy) {
  const auto found = decorations.find(original);
  if (found == decorations.end()) return;
  std::vector<Instruction> copies = found->second;
  for (Instruction& i : copies) i.operands[0] = copy;
  decorations[copy] = std::move(copies);
}

void Replacements::add(Id id, Id other) {
  if (id >= others_.size()) others_.resize(std::max<std::size_t>(id + 1, 2 * others_.size()));
  if ((*this)(other) != id) others_[id] = other;
}

Id Replacements::operator()(Id id) const {
  Id last = id;
  while (last < others_.size() && others_[last] != 0) last = others_[last];
  while (id != last) {  // so that a chain is followed once
    const Id next = others_[id];
    others_[id] = last;
    id = next;
  }
  return last;
}

void Replacements::apply(Function& function) const {
  if (empty()) return;
  for (Block& block : function.blocks) {
    for (Instruction& i : block.code) for_each_id(i, [&](Id& id) { id = (*this)(id); });
  }
}

}  // namespace halfstep::vk::ir
