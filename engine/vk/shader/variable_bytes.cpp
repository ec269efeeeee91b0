#include "vk/shader/variable_bytes.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "vk/optimize/fold.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

/// Follows a module's types and constants to the sizes of its variables.
class Sizes {
 public:
  explicit Sizes(const Constants& constants) : given_(constants) {}

  void visit(const Instruction& i) {
    if (i.opcode == op_decorate && i.operand(2) == decoration_spec_id) spec_ids_[i.operand(1)] = i.operand(3);
    if (i.opcode == op_decorate && i.operand(2) == decoration_array_stride) strides_[i.operand(1)] = i.operand(3);
    if (i.opcode == op_member_decorate && i.operand(3) == decoration_offset)
      offsets_[{i.operand(1), i.operand(2)}] = i.operand(4);
    if (i.opcode == op_member_decorate && i.operand(3) == decoration_matrix_stride)
      matrix_strides_[{i.operand(1), i.operand(2)}] = i.operand(4);
    if (i.opcode == op_member_decorate && i.operand(3) == decoration_row_major)
      row_major_.insert({i.operand(1), i.operand(2)});
    if (i.opcode == op_variable && i.operand(3) == storage_workgroup) shared_ += pointee_size(i.operand(1));
    if (i.opcode == op_variable && i.operand(3) == storage_push_constant) pushed_ += pointee_size(i.operand(1));
    visit_type(i);
    visit_constant(i);
  }

  std::uint64_t shared() const { return shared_; }
  std::uint64_t pushed() const { return pushed_; }
  bool has_empty() const { return has_empty_; }

 private:
  /// Of a struct type: its id, and which it is.
  using Member = std::pair<std::uint32_t, std::uint32_t>;

  void visit_type(const Instruction& i) {
    const std::uint32_t id = i.operand(1);
    if (i.opcode == op_type_bool) bytes_[id] = 4;
    if (i.opcode == op_type_int || i.opcode == op_type_float) bytes_[id] = i.operand(2) / 8;
    if (i.opcode == op_type_vector || i.opcode == op_type_matrix) bytes_[id] = bytes_[i.operand(2)] * i.operand(3);
    if (i.opcode == op_type_matrix) matrices_[id] = {i.operand(2), i.operand(3)};
    if (i.opcode == op_type_array) arrays_[id] = {i.operand(2), i.operand(3)};
    if (i.opcode == op_type_pointer && (i.operand(2) == storage_workgroup || i.operand(2) == storage_push_constant))
      pointees_[id] = i.operand(3);
    if (i.opcode == op_type_pointer && i.operand(2) == storage_physical_buffer) bytes_[id] = 8;
    if (i.opcode != op_type_struct) return;
    for (std::size_t member = 2; member < i.words.size(); ++member) members_[id].push_back(i.operand(member));
  }

  void visit_constant(const Instruction& i) {
    const std::uint32_t id = i.operand(2);
    switch (i.opcode) {
      case op_constant:
      case op_spec_constant:
        values_[id] = given(id).value_or(i.operand(3));
        return;
      case op_constant_true:
      case op_spec_constant_true:
        values_[id] = given(id).value_or(1);
        return;
      case op_constant_false:
      case op_spec_constant_false:
        values_[id] = given(id).value_or(0);
        return;
      case op_spec_constant_op:
        if (const std::optional<std::uint32_t> value = operation(i)) values_[id] = *value;
        return;
      default:
        return;
    }
  }

  std::optional<std::uint32_t> given(std::uint32_t id) const {
    const auto number = spec_ids_.find(id);
    if (number == spec_ids_.end()) return std::nullopt;
    const auto value = given_.find(number->second);
    return value == given_.end() ? std::nullopt : std::optional(value->second);
  }

  std::optional<std::uint32_t> operation(const Instruction& i) const {
    const auto a = values_.find(i.operand(4));
    const auto b = values_.find(i.operand(5));
    if (a == values_.end() || b == values_.end()) return std::nullopt;
    if (i.operand(3) != op_select) return ir::integer_result(i.operand(3), a->second, b->second);
    const auto c = values_.find(i.operand(6));
    if (a->second != 0) return b->second;
    return c == values_.end() ? std::nullopt : std::optional(c->second);
  }

  std::uint64_t pointee_size(std::uint32_t pointer) {
    const auto pointee = pointees_.find(pointer);
    return pointee == pointees_.end() ? 0 : size(pointee->second);
  }

  std::uint64_t size(std::uint32_t type) {
    if (const auto array = arrays_.find(type); array != arrays_.end()) {
      const auto length = values_.find(array->second.length);
      if (length == values_.end()) {
        fail("shader",
             fmt::format("expected a known length of every array in shared memory and push constants, got %{} "
                         "for %{}",
                         array->second.length, type));
      }
      has_empty_ |= length->second == 0;
      const auto stride = strides_.find(type);
      return (stride == strides_.end() ? size(array->second.element) : stride->second) * length->second;
    }
    if (const auto members = members_.find(type); members != members_.end()) {
      std::uint64_t bytes = 0;
      for (std::uint32_t i = 0; i < members->second.size(); ++i) {
        const auto offset = offsets_.find({type, i});
        const std::uint64_t begin = offset == offsets_.end() ? bytes : offset->second;
        bytes = std::max(bytes, begin + member_size({type, i}, members->second[i]));
      }
      return bytes;
    }
    const auto bytes = bytes_.find(type);
    if (bytes == bytes_.end())
      fail("shader", fmt::format("expected numbers in shared memory and push constants, got type %{}", type));
    return bytes->second;
  }

  /// A matrix lies as `stride` says, which the member that has it knows: its last column, or row, ends it.
  std::uint64_t member_size(const Member& member, std::uint32_t type) {
    const auto matrix = matrices_.find(type);
    const auto stride = matrix_strides_.find(member);
    if (matrix == matrices_.end() || stride == matrix_strides_.end()) return size(type);
    const std::uint64_t column = size(matrix->second.column);
    const std::uint64_t rows = column / 4;
    const std::uint64_t columns = matrix->second.columns;
    const bool by_rows = row_major_.contains(member);
    return std::uint64_t{stride->second} * ((by_rows ? rows : columns) - 1) + (by_rows ? 4 * columns : column);
  }

  struct MatrixType {
    std::uint32_t column = 0;
    std::uint32_t columns = 0;
  };
  struct ArrayType {
    std::uint32_t element = 0;
    std::uint32_t length = 0;  ///< the id of a constant
  };

  const Constants& given_;
  std::map<std::uint32_t, std::uint32_t> spec_ids_;
  std::map<std::uint32_t, std::uint32_t> values_;
  std::map<std::uint32_t, std::uint64_t> bytes_;
  std::map<std::uint32_t, ArrayType> arrays_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> members_;
  std::map<std::uint32_t, std::uint32_t> pointees_;
  std::map<std::uint32_t, std::uint32_t> strides_;  ///< of array types
  std::map<std::uint32_t, MatrixType> matrices_;
  std::map<Member, std::uint32_t> offsets_;
  std::map<Member, std::uint32_t> matrix_strides_;
  std::set<Member> row_major_;
  std::uint64_t shared_ = 0;
  std::uint64_t pushed_ = 0;
  bool has_empty_ = false;
};

}  // namespace

VariableBytes variable_bytes(std::span<const std::uint32_t> words, const Constants& constants) {
  Sizes sizes(constants);
  for_each_instruction(words, [&](const Instruction& i) { sizes.visit(i); });
  return {sizes.shared(), sizes.pushed(), sizes.has_empty()};
}

}  // namespace halfstep::vk
