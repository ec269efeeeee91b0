#include "vk/shader/spirv_functions.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

/// Numbers of GLSL.std.450, and of a function without control.
enum : std::uint32_t {
  glsl_abs = 4,
  glsl_floor = 8,
  storage_function_control_none = 0,
};

bool is_glsl(const Instruction& i) {
  constexpr std::string_view name = "GLSL.std.450";
  return (i.words.size() - 2) * 4 > name.size() && std::memcmp(&i.words[2], name.data(), name.size()) == 0;
}

/// Whether the instruction is of the sections that types and constants end.
bool begins_types(std::uint32_t opcode) {
  return opcode >= op_type_void && opcode <= op_type_function;
}

}  // namespace

/// The body of a function that is being written.
class Code {
 public:
  explicit Code(FunctionWriter& module) : module_(&module) {}

  Number instruction(std::uint32_t op, NumberType result, std::initializer_list<std::uint32_t> operands) {
    const std::uint32_t id = module_->next_id();
    std::vector<std::uint32_t> all{module_->type(result), id};
    all.insert(all.end(), operands.begin(), operands.end());
    append(words_, op, all);
    if (result.scalar == Scalar::f32) keep_exact(op, id);
    return {*this, result, id};
  }
  Number glsl(std::uint32_t number, const Number& a) {
    return instruction(op_ext_inst, a.type(), {module_->instructions_of_glsl(), number, a.id()});
  }
  Number constant(NumberType type, std::uint32_t bits) { return {*this, type, module_->constant(type, bits)}; }
  std::span<const std::uint32_t> words() const { return words_; }

 private:
  void keep_exact(std::uint32_t op, std::uint32_t id) {
    if (op == op_f_add || op == op_f_sub || op == op_f_mul) module_->keep_exact(id);
  }

  FunctionWriter* module_;
  std::vector<std::uint32_t> words_;
};

namespace {

/// The opcode for floats, signed and unsigned integers, and booleans; 0 where there is none.
struct Opcodes {
  std::uint32_t f32 = 0;
  std::uint32_t i32 = 0;
  std::uint32_t u32 = 0;
  std::uint32_t boolean = 0;
};

std::uint32_t opcode_for(const Opcodes& opcodes, Scalar scalar) {
  switch (scalar) {
    case Scalar::f32:
      return opcodes.f32;
    case Scalar::i32:
      return opcodes.i32;
    case Scalar::u32:
      return opcodes.u32;
    case Scalar::boolean:
      break;
  }
  return opcodes.boolean;
}

Number binary(const Opcodes& opcodes, const Number& a, const Number& b) {
  return a.code().instruction(opcode_for(opcodes, a.type().scalar), a.type(), {a.id(), b.id()});
}
Number compared(const Opcodes& opcodes, const Number& a, const Number& b) {
  return a.code().instruction(opcode_for(opcodes, a.type().scalar), {Scalar::boolean, a.type().width},
                              {a.id(), b.id()});
}

}  // namespace

Number Number::operator[](std::uint32_t component) const {
  return code_->instruction(op_composite_extract, {type_.scalar, 1}, {id_, component});
}
Number Number::constant(Scalar scalar, double value) const {
  const auto bits = scalar == Scalar::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                          : static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
  return code_->constant({scalar, type_.width}, bits);
}

Number operator+(const Number& a, const Number& b) {
  return binary({op_f_add, op_i_add, op_i_add}, a, b);
}
Number operator-(const Number& a, const Number& b) {
  return binary({op_f_sub, op_i_sub, op_i_sub}, a, b);
}
Number operator*(const Number& a, const Number& b) {
  return binary({op_f_mul, op_i_mul, op_i_mul}, a, b);
}
Number operator/(const Number& a, const Number& b) {
  return binary({.u32 = op_u_div}, a, b);
}
Number operator<<(const Number& a, const Number& b) {
  return binary({0, op_shift_left, op_shift_left}, a, b);
}
Number operator>>(const Number& a, const Number& b) {
  return binary({0, op_shift_right_arithmetic, op_shift_right_logical}, a, b);
}
Number operator&(const Number& a, const Number& b) {
  return binary({0, op_bitwise_and, op_bitwise_and, op_logical_and}, a, b);
}
Number operator|(const Number& a, const Number& b) {
  return binary({0, op_bitwise_or, op_bitwise_or, op_logical_or}, a, b);
}
Number operator^(const Number& a, const Number& b) {
  return binary({0, op_bitwise_xor, op_bitwise_xor}, a, b);
}
Number operator<(const Number& a, const Number& b) {
  return compared({op_f_ord_less_than, op_s_less_than, op_u_less_than}, a, b);
}
Number operator==(const Number& a, const Number& b) {
  return compared({op_f_ord_equal, op_i_equal, op_i_equal}, a, b);
}
Number operator!=(const Number& a, const Number& b) {
  return compared({0, op_i_not_equal, op_i_not_equal}, a, b);
}

Number select(const Number& condition, const Number& yes, const Number& no) {
  return yes.code().instruction(op_select, yes.type(), {condition.id(), yes.id(), no.id()});
}
Number bits_as(Scalar scalar, const Number& a) {
  return a.code().instruction(op_bitcast, {scalar, a.type().width}, {a.id()});
}
Number convert(Scalar scalar, const Number& a) {
  const bool from_float = a.type().scalar == Scalar::f32;
  const std::uint32_t op = from_float ? scalar == Scalar::i32 ? op_convert_f_to_s : op_convert_f_to_u
                           : a.type().scalar == Scalar::i32 ? op_convert_s_to_f
                                                            : op_convert_u_to_f;
  return a.code().instruction(op, {scalar, a.type().width}, {a.id()});
}
Number floor(const Number& a) {
  return a.code().glsl(glsl_floor, a);
}
Number absolute(const Number& a) {
  return a.code().glsl(glsl_abs, a);
}
Number vector_of(std::span<const Number> components) {
  const NumberType type{components[0].type().scalar, static_cast<std::uint32_t>(components.size())};
  if (type.width == 2)
    return components[0].code().instruction(op_composite_construct, type, {components[0].id(), components[1].id()});
  if (type.width == 3) {
    return components[0].code().instruction(op_composite_construct, type,
                                            {components[0].id(), components[1].id(), components[2].id()});
  }
  return components[0].code().instruction(
      op_composite_construct, type, {components[0].id(), components[1].id(), components[2].id(), components[3].id()});
}

FunctionWriter::FunctionWriter(std::span<const std::uint32_t> words) {
  for_each_instruction(words, [&](const Instruction& i) {
    const std::uint32_t id = i.operand(1);
    if (i.opcode == op_ext_inst_import && is_glsl(i)) glsl_ = id;
    if (i.opcode == op_type_bool) types_[{Scalar::boolean, 1}] = id;
    if (i.opcode == op_type_int && i.operand(2) == 32) types_[{i.operand(3) == 0 ? Scalar::u32 : Scalar::i32, 1}] = id;
    if (i.opcode == op_type_float && i.operand(2) == 32) types_[{Scalar::f32, 1}] = id;
    if (i.opcode == op_type_vector) {
      const NumberType element = type_of(i.operand(2));
      if (element.width == 1) types_[{element.scalar, i.operand(3)}] = id;
    }
    if (i.opcode == op_type_function) function_types_[{i.words.begin() + 2, i.words.end()}] = id;
  });
  std::copy_n(words.begin(), header_.size(), header_.begin());
  bound_ = header_[3];
  if (glsl_ == 0) glsl_ = next_id();
}

NumberType FunctionWriter::type_of(std::uint32_t type) const {
  const auto found = std::ranges::find_if(types_, [&](const auto& entry) { return entry.second == type; });
  return found == types_.end() ? NumberType{Scalar::f32, 0} : found->first;
}

std::uint32_t FunctionWriter::type(NumberType wanted) {
  const auto found = types_.find(wanted);
  if (found != types_.end()) return found->second;
  if (wanted.width > 1) {
    const std::uint32_t element = type({wanted.scalar, 1});
    const std::uint32_t id = types_[wanted] = next_id();
    append(declared_, op_type_vector, {id, element, wanted.width});
    return id;
  }
  const std::uint32_t id = types_[wanted] = next_id();
  if (wanted.scalar == Scalar::boolean) append(declared_, op_type_bool, {id});
  if (wanted.scalar == Scalar::f32) append(declared_, op_type_float, {id, 32});
  if (wanted.scalar == Scalar::u32) append(declared_, op_type_int, {id, 32, 0});
  if (wanted.scalar == Scalar::i32) append(declared_, op_type_int, {id, 32, 1});
  return id;
}

std::uint32_t FunctionWriter::function_type(NumberType result, std::span<const NumberType> arguments) {
  std::vector<std::uint32_t> types{type(result)};
  for (const NumberType& argument : arguments) types.push_back(type(argument));
  const auto found = function_types_.find(types);
  if (found != function_types_.end()) return found->second;
  const std::uint32_t id = function_types_[types] = next_id();
  std::vector<std::uint32_t> operands{id};
  operands.insert(operands.end(), types.begin(), types.end());
  append(declared_, op_type_function, operands);
  return id;
}

std::uint32_t FunctionWriter::constant(NumberType of, std::uint32_t bits) {
  const auto found = constants_.find({of, bits});
  if (found != constants_.end()) return found->second;
  if (of.width == 1) {
    const std::uint32_t type_id = type(of);
    const std::uint32_t id = constants_[{of, bits}] = next_id();
    append(declared_, op_constant, {type_id, id, bits});
    return id;
  }
  const std::uint32_t type_id = type(of);
  const std::uint32_t element = constant({of.scalar, 1}, bits);
  const std::uint32_t id = constants_[{of, bits}] = next_id();
  std::vector<std::uint32_t> operands{type_id, id};
  operands.resize(2 + of.width, element);
  append(declared_, op_constant_composite, operands);
  return id;
}

std::uint32_t FunctionWriter::function(std::span<const NumberType> arguments, NumberType result,
                                       const std::function<Number(std::span<const Number>)>& body) {
  Code code(*this);
  const std::uint32_t id = next_id();
  const std::uint32_t function_type_id = function_type(result, arguments);
  std::vector<std::uint32_t> head;
  append(head, op_function, {type(result), id, storage_function_control_none, function_type_id});
  std::vector<Number> values;
  for (const NumberType& argument : arguments) {
    values.emplace_back(code, argument, next_id());
    append(head, op_function_parameter, {type(argument), values.back().id()});
  }
  append(head, op_label, {next_id()});
  const Number value = body(values);
  functions_.insert(functions_.end(), head.begin(), head.end());
  functions_.insert(functions_.end(), code.words().begin(), code.words().end());
  append(functions_, op_return_value, {value.id()});
  append(functions_, op_function_end, {});
  return id;
}

std::vector<std::uint32_t> FunctionWriter::finish(std::span<const std::uint32_t> body) const {
  std::vector<std::uint32_t> result(header_.begin(), header_.end());
  result[3] = bound_;
  std::vector<std::uint32_t> whole(header_.begin(), header_.end());
  whole.insert(whole.end(), body.begin(), body.end());
  bool has_glsl = false;
  bool in_extensions = true;
  bool in_annotations = true;
  bool in_declarations = true;
  for_each_instruction(whole, [&](const Instruction& i) {
    has_glsl |= i.opcode == op_ext_inst_import && i.operand(1) == glsl_;
    if (in_extensions && i.opcode != op_capability && i.opcode != op_extension && i.opcode != op_ext_inst_import) {
      in_extensions = false;
      if (!has_glsl) append(result, op_ext_inst_import, {glsl_, glsl_begins, 0x6474732e, 0x3035342e, 0});
    }
    if (in_annotations && begins_types(i.opcode)) {
      in_annotations = false;
      for (const std::uint32_t id : exact_) append(result, op_decorate, {id, decoration_no_contraction});
    }
    if (in_declarations && i.opcode == op_function) {
      in_declarations = false;
      result.insert(result.end(), declared_.begin(), declared_.end());
    }
    result.insert(result.end(), i.words.begin(), i.words.end());
  });
  result.insert(result.end(), functions_.begin(), functions_.end());
  return result;
}

}  // namespace halfstep::vk
