#include "vk/shader/exact_arithmetic.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "vk/shader/exact_functions.h"
#include "vk/shader/spirv.h"
#include "vk/shader/spirv_functions.h"

namespace halfstep::vk {
namespace {

/// Instructions on floats for which there is no function: OpFConvert, OpQuantizeToF16, OpFRem, products of matrices,
/// and sums, products and extremes over a subgroup.
bool has_no_function(std::uint32_t opcode) {
  constexpr std::array without{115U, 116U, 140U, 143U, 144U, 145U, 146U, 147U, 350U, 352U, 355U, 358U};
  return std::ranges::find(without, opcode) != without.end();
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
    note_pointer(i);
    if (i.opcode == op_load && is_f32(i.operand(1)) && is_in_buffer(i.operand(3))) return load(i);
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

  void note_pointer(const Instruction& i) {
    if (i.opcode == op_type_pointer) storage_[i.operand(1)] = i.operand(2);
    const bool points = i.opcode == op_variable || i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain;
    if (points) storage_[i.operand(2)] = storage_[i.operand(1)];
  }
  bool is_in_buffer(std::uint32_t pointer) const {
    constexpr std::array buffers{2U, 12U, 5349U};  // Uniform, StorageBuffer, PhysicalStorageBuffer
    const auto found = storage_.find(pointer);
    return found != storage_.end() && std::ranges::find(buffers, found->second) != buffers.end();
  }

  /// Loads, and calls a function of what was loaded.
  void load(const Instruction& i) {
    const std::uint32_t loaded = writer_.next_id();
    const std::size_t at = body_.size();
    body_.insert(body_.end(), i.words.begin(), i.words.end());
    body_[at + 2] = loaded;
    types_[loaded] = i.operand(1);
    const std::array<std::uint32_t, 4> words{4U << 16 | op_load, i.operand(1), i.operand(2), loaded};
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
  std::map<std::uint32_t, std::uint32_t> types_;    ///< of ids
  std::map<std::uint32_t, std::uint32_t> storage_;  ///< classes of pointers, and of their types
  std::map<std::pair<const ExactFunction*, std::vector<NumberType>>, std::uint32_t> functions_;
  std::vector<std::uint32_t> body_;
};

}  // namespace

std::vector<std::uint32_t> with_exact_arithmetic(std::span<const std::uint32_t> words, std::string_view shader) {
  return ExactRewriter(words, shader).all(words);
}

std::vector<std::uint32_t> with_exact_unpacking(std::span<const std::uint32_t> words) {
  return ExactRewriter(words, "").unpacking(words);
}

}  // namespace halfstep::vk
