#include "vk/shader/exact_arithmetic.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vk/shader/exact_functions.h"
#include "vk/shader/spirv.h"
#include "vk/shader/spirv_functions.h"

namespace halfstep::vk {
namespace {

/// Instructions on floats for which there is no function: OpFConvert, OpQuantizeToF16, OpFRem, products of matrices,
/// sums, products and extremes over a subgroup, and atomic ones, whose order nobody knows.
bool has_no_function(std::uint32_t opcode) {
  constexpr std::array without{115U, 116U, 140U, 143U, 144U,  145U,  146U, 147U,
                               350U, 352U, 355U, 358U, 5614U, 5615U, 6035U};
  return std::ranges::find(without, opcode) != without.end();
}

/// The bits of an f32 with 0 in place of 2^-126 and what is smaller, as exact_load() makes it.
std::uint32_t flushed_bits(std::uint32_t bits) {
  constexpr std::uint32_t least_normal = 0x00800000;
  constexpr std::uint32_t sign = 0x80000000;
  return (bits & ~sign) <= least_normal ? bits & sign : bits;
}

class ExactRewriter {
 public:
  ExactRewriter(std::span<const std::uint32_t> words, std::string_view shader) : writer_(words), shader_(shader) {}

  std::vector<std::uint32_t> all(std::span<const std::uint32_t> words) {
    for_each_instruction(words, [&](const Instruction& i) { visit(i); });
    return writer_.finish(body_);
  }

  std::vector<std::uint32_t> unpacking(std::span<const std::uint32_t> words) {
    for_each_instruction(words, [&](const Instruction& i) {
      note_type(i);
      if (i.opcode == op_ext_inst && i.operand(4) == glsl_unpack_half_2x16) {
        return call(i, *exact_function_of_glsl(glsl_unpack_half_2x16), 5);
      }
      body_.insert(body_.end(), i.words.begin(), i.words.end());
    });
    return functions_.empty() ? std::vector(words.begin(), words.end()) : writer_.finish(body_);
  }

 private:
  void note_type(const Instruction& i) {
    if (writer_.type_of(i.operand(1)).width != 0) types_[i.operand(2)] = i.operand(1);
  }

  void visit(const Instruction& i) {
    if (i.opcode == op_type_float && i.operand(2) != 32) refuse(fmt::format("floats of {} bits", i.operand(2)));
    note_type(i);
    note_members(i);
    note_pointer(i);
    if (i.opcode == op_load && is_given(i.operand(3))) return load(i);
    if (i.opcode == op_copy_memory && is_given(i.operand(2))) refuse("OpCopyMemory from a buffer");
    note_zero(i);
    if ((i.opcode == op_constant || i.opcode == op_spec_constant) && is_f32(i.operand(1)))
      return append(body_, i.opcode, {i.operand(1), i.operand(2), flushed_bits(i.operand(3))});
    const bool with_zero = zeros_.contains(i.operand(3)) || zeros_.contains(i.operand(4));
    if (const ExactFunction* zero = with_zero ? exact_function_with_zero(i.opcode) : nullptr) return call(i, *zero, 3);
    if (i.opcode == op_bitcast && is_f32(i.operand(1))) return call(i, exact_bitcast(), 3);
    const bool of_glsl = i.opcode == op_ext_inst;
    const ExactFunction* exact = of_glsl ? exact_function_of_glsl(i.operand(4)) : exact_function(i.opcode);
    if (exact != nullptr) return call(i, *exact, of_glsl ? 5 : 3);
    if (of_glsl && !is_exact_in_glsl(i.operand(4))) refuse(fmt::format("instruction {} of GLSL.std.450", i.operand(4)));
    if (has_no_function(i.opcode)) refuse(fmt::format("opcode {}", i.opcode));
    body_.insert(body_.end(), i.words.begin(), i.words.end());
  }

  bool is_f32(std::uint32_t type) const {
    const NumberType number = writer_.type_of(type);
    return number.width != 0 && number.scalar == Scalar::f32;
  }

  void note_zero(const Instruction& i) {
    const bool number = i.opcode == op_constant && is_f32(i.operand(1)) && flushed_bits(i.operand(3)) << 1 == 0;
    const bool none = i.opcode == op_constant_null && is_f32(i.operand(1));
    const bool all = i.opcode == op_constant_composite && is_f32(i.operand(1)) &&
                     std::ranges::all_of(i.words.subspan(3), [&](std::uint32_t part) { return zeros_.contains(part); });
    if (number || none || all) zeros_.insert(i.operand(2));
  }

  /// What a struct, matrix or array consists of: types, or one that all its members have.
  struct Members {
    std::vector<std::uint32_t> types;
    std::uint32_t count = 0;  ///< 0 where a specialization constant says it
  };
  void note_members(const Instruction& i) {
    if (i.opcode == op_constant) lengths_[i.operand(2)] = i.operand(3);
    if (i.opcode == op_type_matrix) members_[i.operand(1)] = {{i.operand(2)}, i.operand(3)};
    if (i.opcode == op_type_array) members_[i.operand(1)] = {{i.operand(2)}, lengths_[i.operand(3)]};
    if (i.opcode != op_type_struct) return;
    members_[i.operand(1)] = {{i.words.begin() + 2, i.words.end()}, static_cast<std::uint32_t>(i.words.size() - 2)};
  }

  /// A number of f32, or a vector of them, within a value: its type, and the indices that lead to it.
  struct Part {
    std::uint32_t type;
    std::vector<std::uint32_t> path;
  };
  void add_parts(const Part& of, std::vector<Part>& parts) {
    if (is_f32(of.type)) parts.push_back(of);
    const auto found = members_.find(of.type);
    if (found == members_.end()) return;
    const Members& members = found->second;
    if (members.count == 0) refuse("the load of a whole array whose length is a specialization constant");
    for (std::uint32_t member = 0; member < members.count; ++member) {
      Part part{members.types[members.types.size() == 1 ? 0 : member], of.path};
      part.path.push_back(member);
      add_parts(part, parts);
    }
  }

  void note_pointer(const Instruction& i) {
    if (i.opcode == op_type_pointer) {
      storage_of_types_[i.operand(1)] = i.operand(2);
      return;
    }
    const auto type = storage_of_types_.find(i.operand(1));
    if (type != storage_of_types_.end()) storage_[i.operand(2)] = type->second;
  }
  /// Whether it points to numbers that the application may have given.
  bool is_given(std::uint32_t pointer) const {
    constexpr std::array given{2U, 9U, 12U, 5349U};  // Uniform, PushConstant, StorageBuffer, PhysicalStorageBuffer
    const auto found = storage_.find(pointer);
    return found != storage_.end() && std::ranges::find(given, found->second) != given.end();
  }

  /// Loads, and calls a function of each number of f32 that was loaded.
  void load(const Instruction& i) {
    std::vector<Part> parts;
    add_parts({i.operand(1), {}}, parts);
    const std::size_t at = body_.size();
    body_.insert(body_.end(), i.words.begin(), i.words.end());
    if (parts.empty()) return;
    std::uint32_t value = body_[at + 2] = writer_.next_id();
    if (parts.front().path.empty()) return call_of(value, i.operand(1), i.operand(2));
    for (const Part& part : parts) {
      const std::uint32_t extracted = writer_.next_id();
      const std::uint32_t exact = writer_.next_id();
      const std::uint32_t next = &part == &parts.back() ? i.operand(2) : writer_.next_id();
      std::vector<std::uint32_t> operands{part.type, extracted, value};
      operands.insert(operands.end(), part.path.begin(), part.path.end());
      append(body_, op_composite_extract, operands);
      call_of(extracted, part.type, exact);
      operands = {i.operand(1), next, exact, value};
      operands.insert(operands.end(), part.path.begin(), part.path.end());
      append(body_, op_composite_insert, operands);
      value = next;
    }
  }
  void call_of(std::uint32_t loaded, std::uint32_t type, std::uint32_t result) {
    types_[loaded] = type;
    const std::array<std::uint32_t, 4> words{4U << 16 | op_load, type, result, loaded};
    call({op_load, words}, exact_load(), 3);
  }

  /// Calls a function in place of an instruction whose operands begin at `first`.
  void call(const Instruction& i, const ExactFunction& exact, std::size_t first) {
    std::vector<NumberType> arguments;
    for (std::size_t operand = first; operand < i.words.size(); ++operand) {
      arguments.push_back(writer_.type_of(types_[i.operand(operand)]));
    }
    const NumberType result = writer_.type_of(i.operand(1));
    const std::pair key{&exact, arguments};
    if (!functions_.contains(key)) functions_[key] = writer_.function(arguments, result, exact.body);
    body_.push_back(static_cast<std::uint32_t>(4 + arguments.size()) << 16 | op_function_call);
    body_.insert(body_.end(), {i.operand(1), i.operand(2), functions_[key]});
    body_.insert(body_.end(), i.words.begin() + static_cast<std::ptrdiff_t>(first), i.words.end());
  }

  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorCode::unsupported, "precision",
         fmt::format("expected kernels of sums and products of f32 for Precision::reproducible, got {} in {}", what,
                     shader_));
  }

  FunctionWriter writer_;
  std::string_view shader_;
  std::map<std::uint32_t, std::uint32_t> types_;             ///< of ids
  std::set<std::uint32_t> zeros_;                            ///< constants
  std::map<std::uint32_t, std::uint32_t> storage_of_types_;  ///< classes of types of pointers
  std::map<std::uint32_t, std::uint32_t> storage_;           ///< classes of pointers
  std::map<std::uint32_t, std::uint32_t> lengths_;           ///< constants that may be lengths of arrays
  std::map<std::uint32_t, Members> members_;                 ///< of types
  std::map<std::pair<const ExactFunction*, std::vector<NumberType>>, std::uint32_t> functions_;
  std::vector<std::uint32_t> body_;
};

}  // namespace

std::vector<std::uint32_t> with_exact_arithmetic(std::span<const std::uint32_t> words, std::string_view shader) {
  return ExactRewriter(words, shader).all(words);
}

Constants with_exact_constants(std::span<const std::uint32_t> words, Constants constants) {
  std::map<std::uint32_t, std::uint32_t> numbers;  // id: number of the specialization constant
  std::set<std::uint32_t> floats;                  // types
  for_each_instruction(words, [&](const Instruction& i) {
    if (i.opcode == op_decorate && i.operand(2) == decoration_spec_id) numbers[i.operand(1)] = i.operand(3);
    if (i.opcode == op_type_float) floats.insert(i.operand(1));
    if (i.opcode != op_spec_constant || !floats.contains(i.operand(1)) || !numbers.contains(i.operand(2))) return;
    const auto given = constants.find(numbers[i.operand(2)]);
    if (given != constants.end()) given->second = flushed_bits(given->second);
  });
  return constants;
}

std::vector<std::uint32_t> with_exact_unpacking(std::span<const std::uint32_t> words) {
  return ExactRewriter(words, "").unpacking(words);
}

}  // namespace halfstep::vk
