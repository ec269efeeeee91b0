#include "vk/shader/window_access.h"

#include "vk/shader/opcodes.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t no_control = 0;

bool is_atomic(std::uint32_t opcode) {
  return opcode != op_load && opcode != op_store;
}

/// Calls `visit` with each id that an access uses, which it may replace, and its type, or 0 for what functions can use
/// as it is: constants.
template <typename Access, typename Visit>
void for_each_id(const Declarations& module, Access& access, const Visit& visit) {
  const auto type_of = [&](std::uint32_t id, std::uint32_t type) { return module.globals.contains(id) ? 0 : type; };
  for (auto& index : access.indices) {
    const auto found = module.integers.find(index);
    visit(index, type_of(index, found == module.integers.end() ? 0 : found->second));
  }
  const std::uint32_t element = module.pointee(access.pointer_type);
  if (is_atomic(access.opcode)) {
    for (auto& operand : access.operands) visit(operand, type_of(operand, element));
  }
}

}  // namespace

/// The function of an access.
class WindowFunctions::Body {
 public:
  Body(Additions& to, const WindowAccess& access, std::uint32_t value_type)
      : to_(to), access_(access), value_type_(value_type) {}

  std::uint32_t write() {
    std::vector<std::uint32_t> parameters;
    std::vector<std::uint32_t> declaration{op_type_function, returned()};
    const auto parameter = [&](std::uint32_t& id, std::uint32_t type) {
      if (type == 0) return;
      declaration.push_back(type);
      id = to_.next_id();
      append(parameters, op_function_parameter, {type, id});
    };
    const std::uint32_t index_type = to_.module().integers.at(access_.indices[1]);
    for_each_id(to_.module(), access_, parameter);
    if (access_.opcode == op_store) parameter(access_.value, value_type_);
    const std::uint32_t function = to_.next_id();
    add(op_function, {returned(), function, no_control, to_.type(declaration)});
    words_.insert(words_.end(), parameters.begin(), parameters.end());
    add(op_label, {block_ = to_.next_id()});
    place_ = to_.next_id();
    add(op_bitwise_and, {index_type, place_, access_.indices[1], to_.constant(index_type, access_.elements - 1)});
    const std::uint32_t result = among(0, access_.count, index_type);
    if (access_.result_type == 0) {
      add(op_return, {});
    } else {
      add(op_return_value, {result});
    }
    add(op_function_end, {});
    to_.functions().insert(to_.functions().end(), words_.begin(), words_.end());
    return function;
  }

 private:
  std::uint32_t returned() { return access_.result_type == 0 ? to_.type({op_type_void}) : access_.result_type; }

  /// The access to the window, of those from `first` to before `end`, that has the element. Returns its result.
  std::uint32_t among(std::uint32_t first, std::uint32_t end, std::uint32_t index_type) {
    if (end - first == 1) return in(first);
    const std::uint32_t middle = first + (end - first) / 2;
    const std::uint32_t below = to_.next_id();
    const std::uint32_t lower = to_.next_id();
    const std::uint32_t upper = to_.next_id();
    const std::uint32_t both = to_.next_id();
    add(op_u_less_than,
        {to_.type({op_type_bool}), below, access_.indices[1], to_.constant(index_type, middle * access_.elements)});
    add(op_selection_merge, {both, no_control});
    add(op_branch_conditional, {below, lower, upper});
    add(op_label, {block_ = lower});
    const std::uint32_t of_lower = among(first, middle, index_type);
    const std::uint32_t lower_end = block_;
    add(op_branch, {both});
    add(op_label, {block_ = upper});
    const std::uint32_t of_upper = among(middle, end, index_type);
    const std::uint32_t upper_end = block_;
    add(op_branch, {both});
    add(op_label, {block_ = both});
    if (access_.result_type == 0) return 0;
    const std::uint32_t result = to_.next_id();
    add(op_phi, {access_.result_type, result, of_lower, lower_end, of_upper, upper_end});
    return result;
  }

  std::uint32_t in(std::uint32_t window) {
    const std::uint32_t pointer = to_.next_id();
    const std::uint32_t variable =
        window == 0 ? access_.variable : to_.variable_like(access_.variable, access_.rest + window - 1);
    std::vector<std::uint32_t> chain{access_.pointer_type, pointer, variable};
    chain.insert(chain.end(), access_.indices.begin(), access_.indices.end());
    chain[4] = place_;
    add(op_access_chain, chain);
    const std::uint32_t element = to_.module().pointee(access_.pointer_type);
    const bool narrow = to_.module().is_narrow(element);
    std::vector<std::uint32_t> operands{pointer};
    if (access_.opcode == op_store) operands.push_back(narrow ? converted(element, access_.value) : access_.value);
    operands.insert(operands.end(), access_.operands.begin(), access_.operands.end());
    if (access_.result_type == 0) {
      add(access_.opcode, operands);
      return 0;
    }
    const std::uint32_t result = to_.next_id();
    operands.insert(operands.begin(), {narrow ? element : access_.result_type, result});
    add(access_.opcode, operands);
    return narrow ? converted(access_.result_type, result) : result;
  }

  std::uint32_t converted(std::uint32_t type, std::uint32_t value) {
    const std::uint32_t result = to_.next_id();
    add(op_f_convert, {type, result, value});
    return result;
  }

  void add(std::uint32_t opcode, std::initializer_list<std::uint32_t> operands) { append(words_, opcode, operands); }
  void add(std::uint32_t opcode, const std::vector<std::uint32_t>& operands) { append(words_, opcode, operands); }

  Additions& to_;
  WindowAccess access_;
  std::uint32_t value_type_;
  std::uint32_t block_ = 0;
  std::uint32_t place_ = 0;
  std::vector<std::uint32_t> words_;
};

std::uint32_t WindowFunctions::wide(std::uint32_t narrow) {
  const std::vector<std::uint32_t>& declared = to_->module().types.at(narrow);
  const std::uint32_t f32 = to_->type({op_type_float, 32});
  return declared[0] == op_type_vector ? to_->type({op_type_vector, f32, declared[2]}) : f32;
}

void WindowFunctions::call(std::vector<std::uint32_t>& body, const WindowAccess& access, std::uint32_t result) {
  std::vector<std::uint32_t> arguments;
  std::vector<std::uint32_t> key{access.opcode, access.variable, access.pointer_type};
  for_each_id(to_->module(), access, [&](std::uint32_t id, std::uint32_t type) {
    key.insert(key.end(), {type, type == 0 ? id : 0});
    if (type != 0) arguments.push_back(id);
  });
  if (!is_atomic(access.opcode)) key.insert(key.end(), access.operands.begin(), access.operands.end());
  if (access.opcode == op_store) arguments.push_back(access.value);
  const std::uint32_t function = function_for(access, key);
  const std::uint32_t type = access.result_type == 0 ? to_->type({op_type_void}) : access.result_type;
  std::vector<std::uint32_t> operands{type, result == 0 ? to_->next_id() : result, function};
  operands.insert(operands.end(), arguments.begin(), arguments.end());
  append(body, op_function_call, operands);
}

std::uint32_t WindowFunctions::function_for(const WindowAccess& access, const std::vector<std::uint32_t>& key) {
  std::uint32_t& made = made_[key];
  if (made != 0) return made;
  const std::uint32_t element = to_->module().pointee(access.pointer_type);
  return made = Body(*to_, access, to_->module().is_narrow(element) ? wide(element) : element).write();
}

}  // namespace halfstep::vk
