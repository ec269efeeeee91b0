#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "selftest/patches.h"
#include "vk/shader/spirv.h"

/// What patches are made of.
namespace halfstep::selftest {

using Words = std::vector<std::uint32_t>;
using vk::Instruction;

/// A module that is written instruction by instruction.
class Rewriter {
 public:
  explicit Rewriter(const Words& words) : source_(words), next_(words[3]) {
    result_.assign(words.begin(), words.begin() + vk::spirv_header_words);
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode == op::type_int && i.operand(2) == 32 && i.operand(3) == 0) uint_type = i.operand(1);
      if (i.opcode == op::store) stores.insert(i.operand(2));
    });
  }

  /// `visit` writes what stands for an instruction.
  Words rewrite(const std::function<void(Rewriter&, const Instruction&)>& visit) {
    vk::for_each_instruction(source_, [&](const Instruction& i) { visit(*this, i); });
    result_[3] = next_;
    return std::move(result_);
  }

  void keep(const Instruction& i) { result_.insert(result_.end(), i.words.begin(), i.words.end()); }
  void write(std::uint32_t opcode, const std::vector<std::uint32_t>& operands) {
    result_.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16U | opcode);
    result_.insert(result_.end(), operands.begin(), operands.end());
  }
  std::uint32_t fresh() { return next_++; }
  /// A constant, which is to be declared before the first function.
  std::uint32_t declare(std::uint32_t value) {
    const std::uint32_t id = fresh();
    write(op::constant, {uint_type, id, value});
    return id;
  }

  std::uint32_t uint_type = 0;
  std::set<std::uint32_t> stores;  ///< what is stored

 private:
  const Words& source_;
  std::uint32_t next_;
  Words result_;
};

inline std::vector<std::uint32_t> operands_of(const Instruction& i) {
  return {i.words.begin() + 1, i.words.end()};
}

inline Patch rewriting(std::function<void(Rewriter&, const Instruction&)> visit) {
  return [visit = std::move(visit)](const Words& words) { return Rewriter(words).rewrite(visit); };
}

/// The same with a constant declared before the first function.
inline Patch with_constant(std::uint32_t value,
                           const std::function<void(Rewriter&, const Instruction&, std::uint32_t constant)>& visit) {
  return [=](const Words& words) {
    std::uint32_t constant = 0;
    Rewriter rewriter(words);
    if (rewriter.uint_type == 0) return words;
    return rewriter.rewrite([&](Rewriter& out, const Instruction& i) {
      if (i.opcode == op::function && constant == 0) constant = out.declare(value);
      visit(out, i, constant);
    });
  };
}

/// The types of a module's results, and the pointers of storage buffers.
struct Types {
  std::map<std::uint32_t, std::uint32_t> of;  ///< of a result
  std::set<std::uint32_t> buffers;            ///< pointers into them
  std::set<std::uint32_t> stored;             ///< pointers that are stored through

  explicit Types(const Words& words) {
    constexpr std::uint32_t uniform = 2;
    constexpr std::uint32_t storage_buffer = 12;
    std::set<std::uint32_t> variables;
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode >= op::variable && i.words.size() > 2) of[i.operand(2)] = i.operand(1);
      if (i.opcode == op::variable && (i.operand(3) == uniform || i.operand(3) == storage_buffer))
        variables.insert(i.operand(2));
      if (is_chain(i) && variables.contains(i.operand(3))) buffers.insert(i.operand(2));
      if (i.opcode == op::store) stored.insert(i.operand(1));
    });
  }
  static bool is_chain(const Instruction& i) {
    return i.opcode == op::access_chain || i.opcode == op::in_bounds_access_chain;
  }
};

}  // namespace halfstep::selftest
