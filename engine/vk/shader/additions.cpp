#include "vk/shader/additions.h"

#include <algorithm>

#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

bool is_type(std::uint32_t opcode) {
  return opcode >= op_type_void && opcode <= op_type_forward_pointer;
}

bool is_constant(std::uint32_t opcode) {
  return opcode == op_undef || (opcode >= op_constant_true && opcode <= op_spec_constant_op);
}

std::vector<std::uint32_t> operands_from(const Instruction& i, std::size_t first) {
  return {i.words.begin() + static_cast<std::ptrdiff_t>(first), i.words.end()};
}

}  // namespace

Declarations::Declarations(std::span<const std::uint32_t> words) {
  bool in_functions = false;
  for_each_instruction(words, [&](const Instruction& i) {
    in_functions |= i.opcode == op_function;
    if (i.opcode == op_capability) float16_arithmetic |= i.operand(1) == capability_float16;
    if (i.opcode == op_decorate) decorations[i.operand(1)].push_back(operands_from(i, 2));
    if (i.opcode == op_member_decorate && i.operand(3) == decoration_offset)
      offsets[{i.operand(1), i.operand(2)}] = i.operand(4);
    if (is_type(i.opcode)) {
      has_float64 |= i.opcode == op_type_float && i.operand(2) == 64;
      types[i.operand(1)] = operands_from(i, 2);
      types[i.operand(1)].insert(types[i.operand(1)].begin(), i.opcode);
      return;
    }
    const auto type = types.find(i.operand(1));
    if (type == types.end() || i.opcode == op_decorate || i.opcode == op_member_decorate) return;
    const bool integer = type->second[0] == op_type_int && type->second[1] == 32;
    if (integer) integers[i.operand(2)] = type->first;
    if (in_functions) return;
    if (integer && i.opcode == op_constant) constants[i.operand(2)] = i.operand(3);
    if (is_constant(i.opcode)) globals[i.operand(2)] = type->first;
    if (i.opcode == op_variable) variables[i.operand(2)] = type->first;
  });
}

bool Declarations::is_narrow(std::uint32_t type) const {
  const std::vector<std::uint32_t>& declared = types.at(type);
  if (declared[0] == op_type_vector) return is_narrow(declared[1]);
  return declared[0] == op_type_float && declared[1] == 16 && !float16_arithmetic;
}

std::uint32_t Declarations::stride(std::uint32_t array_type) const {
  const auto found = decorations.find(array_type);
  if (found == decorations.end()) return 0;
  for (const std::vector<std::uint32_t>& decoration : found->second) {
    if (decoration[0] == decoration_array_stride) return decoration[1];
  }
  return 0;
}

std::uint32_t Declarations::built_in(std::uint32_t number) const {
  for (const auto& [id, all] : decorations) {
    const bool is_it = std::ranges::any_of(all, [&](const std::vector<std::uint32_t>& words) {
      return words[0] == decoration_built_in && words[1] == number;
    });
    if (is_it && variables.contains(id)) return id;
  }
  return 0;
}

std::optional<std::uint64_t> Declarations::bytes(std::uint32_t type) const {
  constexpr std::uint64_t widest_column = 32;  // of a matrix: four doubles
  const std::vector<std::uint32_t>& of = types.at(type);
  switch (of[0]) {
    case op_type_int:
    case op_type_float:
      return of[1] / 8;
    case op_type_vector:
      return bytes(of[1]).value() * of[2];
    case op_type_matrix:
      return widest_column * of[2];
    case op_type_array: {
      const auto length = constants.find(of[2]);
      if (length == constants.end()) return std::nullopt;
      return std::uint64_t{stride(type)} * length->second;
    }
    case op_type_struct: {
      std::uint64_t end = 0;
      for (std::uint32_t member = 0; member + 1 < of.size(); ++member) {
        const std::optional<std::uint64_t> own = bytes(of[1 + member]);
        const auto offset = offsets.find({type, member});
        if (!own || offset == offsets.end()) return std::nullopt;
        end = std::max(end, offset->second + *own);
      }
      return end;
    }
    default:
      return std::nullopt;
  }
}

Additions::Additions(std::span<const std::uint32_t> words) : module_(words), bound_(words[bound_word]) {
  std::copy_n(words.begin(), header_.size(), header_.begin());
  for (const auto& [id, declaration] : module_.types) types_.emplace(declaration, id);
}

std::uint32_t Additions::type(const std::vector<std::uint32_t>& declaration) {
  const auto [found, fresh] = types_.try_emplace(declaration, bound_);
  if (!fresh) return found->second;
  std::vector<std::uint32_t> operands(declaration.begin(), declaration.end());
  operands[0] = next_id();
  append(declarations_, declaration[0], operands);
  return found->second;
}

std::uint32_t Additions::constant(std::uint32_t type, std::uint32_t value) {
  const auto [found, fresh] = constants_.try_emplace({type, value}, bound_);
  if (fresh) append(declarations_, op_constant, {type, next_id(), value});
  return found->second;
}

std::uint32_t Additions::variable(std::uint32_t pointer_type, std::uint32_t binding) {
  const auto declared = std::ranges::find_if(types_, [&](const auto& type) { return type.second == pointer_type; });
  const std::uint32_t id = next_id();
  append(declarations_, op_variable, {pointer_type, id, declared->first.at(1)});
  append(decorations_, op_decorate, {id, decoration_descriptor_set, 0});
  append(decorations_, op_decorate, {id, decoration_binding, binding});
  return id;
}

std::uint32_t Additions::input(std::uint32_t type, std::uint32_t built_in) {
  if (const std::uint32_t declared = module_.built_in(built_in); declared != 0) return declared;
  const std::uint32_t pointer_type = this->type({op_type_pointer, storage_input, type});
  const auto [found, fresh] = inputs_.try_emplace(built_in, bound_);
  if (!fresh) return found->second;
  append(declarations_, op_variable, {pointer_type, next_id(), storage_input});
  append(decorations_, op_decorate, {found->second, decoration_built_in, built_in});
  return found->second;
}

std::uint32_t Additions::array_block(std::uint32_t element, std::uint32_t stride) {
  const auto [found, fresh] = blocks_.try_emplace(element, 0);
  if (!fresh) return found->second;
  const std::uint32_t array = next_id();
  found->second = next_id();
  append(declarations_, op_type_runtime_array, {array, element});
  append(declarations_, op_type_struct, {found->second, array});
  append(decorations_, op_decorate, {array, decoration_array_stride, stride});
  append(decorations_, op_decorate, {found->second, decoration_block});
  append(decorations_, op_member_decorate, {found->second, 0, decoration_offset, 0});
  return found->second;
}

std::uint32_t Additions::variable_like(std::uint32_t variable, std::uint32_t binding) {
  const auto [found, fresh] = copies_.try_emplace({variable, binding}, 0);
  if (fresh) found->second = copy_of(variable, module_.variables.at(variable), binding);
  return found->second;
}

std::uint32_t Additions::variable_of(std::uint32_t variable, std::uint32_t pointer_type) {
  return copy_of(variable, pointer_type, std::nullopt);
}

std::uint32_t Additions::copy_of(std::uint32_t variable, std::uint32_t pointer_type,
                                 std::optional<std::uint32_t> binding) {
  const std::uint32_t id = next_id();
  const std::uint32_t storage = module_.types.at(module_.variables.at(variable)).at(1);
  append(declarations_, op_variable, {pointer_type, id, storage});
  for (std::vector<std::uint32_t> decoration : module_.decorations.at(variable)) {
    if (decoration[0] == decoration_binding) decoration[1] = binding.value_or(decoration[1]);
    decoration.insert(decoration.begin(), id);
    append(decorations_, op_decorate, decoration);
  }
  resources_.push_back(id);
  return id;
}

std::vector<std::uint32_t> Additions::finish(std::span<const std::uint32_t> body) const {
  constexpr std::uint32_t lists_all_variables = 0x10400;  // entry points do, from SPIR-V 1.4 on
  std::vector<std::uint32_t> whole(header_.begin(), header_.end());
  std::vector<std::uint32_t> result = whole;
  result[bound_word] = bound_;
  whole.insert(whole.end(), body.begin(), body.end());
  bool before_types = true;
  bool before_functions = true;
  for_each_instruction(whole, [&](const Instruction& i) {
    if (before_types && is_type(i.opcode)) {
      before_types = false;
      result.insert(result.end(), decorations_.begin(), decorations_.end());
    }
    if (before_functions && i.opcode == op_function) {
      before_functions = false;
      result.insert(result.end(), declarations_.begin(), declarations_.end());
    }
    if (i.opcode == op_entry_point) {
      std::vector<std::uint32_t> operands = operands_from(i, 1);
      for (const auto& [built_in, input] : inputs_) operands.push_back(input);
      if (header_[1] >= lists_all_variables) operands.insert(operands.end(), resources_.begin(), resources_.end());
      append(result, op_entry_point, operands);
      return;
    }
    result.insert(result.end(), i.words.begin(), i.words.end());
  });
  result.insert(result.end(), functions_.begin(), functions_.end());
  return result;
}

}  // namespace halfstep::vk
