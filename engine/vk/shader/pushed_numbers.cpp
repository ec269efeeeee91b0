#include "vk/shader/pushed_numbers.h"

#include <cstring>
#include <map>

#include "vk/shader/additions.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t word_bytes = 4;

/// Copies a module, and puts numbers in the place of what it reads of its push constants.
class PushRewriter {
 public:
  PushRewriter(std::span<const std::uint32_t> words, std::uint32_t first, std::span<const std::byte> pushed)
      : added_(words), first_(first), pushed_(pushed) {
    for (const auto& [variable, type] : added_.module().variables) {
      if (added_.module().types.at(type)[1] != storage_push_constant) continue;
      variable_ = variable;
      block_ = added_.module().pointee(type);
    }
    for_each_instruction(words, [&](const Instruction& i) { visit(i); });
  }

  std::vector<std::uint32_t> finish() const { return added_.finish(body_); }

 private:
  void visit(const Instruction& i) {
    const bool chain = i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain;
    if (chain && i.operand(3) == variable_) note_place(i);
    if (i.opcode == op_load && places_.contains(i.operand(3)) && put_numbers(i)) return;
    body_.insert(body_.end(), i.words.begin(), i.words.end());
  }

  /// Where a pointer to a member, or to a component of one, points to.
  void note_place(const Instruction& i) {
    constexpr std::size_t of_member = 5;  // words
    if (i.words.size() > of_member + 1) return;
    const auto& constants = added_.module().constants;
    const auto member = constants.find(i.operand(4));
    if (member == constants.end()) return;
    std::uint32_t at = added_.module().offsets.at({block_, member->second});
    if (i.words.size() > of_member) {
      const auto component = constants.find(i.operand(of_member));
      if (component == constants.end()) return;
      at += component->second * word_bytes;
    }
    places_[i.operand(2)] = at;
  }

  /// Puts numbers in the place of a load; returns whether they are known.
  bool put_numbers(const Instruction& load) {
    const std::uint32_t type = load.operand(1);
    const std::vector<std::uint32_t> declared = added_.module().types.at(type);
    const bool vector = declared[0] == op_type_vector;
    const std::uint32_t number = vector ? declared[1] : type;
    const std::uint32_t count = vector ? declared[2] : 1;
    const std::uint32_t at = places_.at(load.operand(3));
    if (!is_word(number) || at < first_ || at - first_ + count * word_bytes > pushed_.size()) return false;
    std::vector<std::uint32_t> operands{type, load.operand(2)};
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t value = 0;
      std::memcpy(&value, &pushed_[at - first_ + i * word_bytes], word_bytes);
      operands.push_back(added_.constant(number, value));
    }
    append(body_, vector ? op_composite_construct : op_copy_object, operands);
    return true;
  }

  bool is_word(std::uint32_t type) const {
    const std::vector<std::uint32_t>& declared = added_.module().types.at(type);
    return (declared[0] == op_type_int || declared[0] == op_type_float) && declared[1] == 8 * word_bytes;
  }

  Additions added_;
  std::uint32_t first_;
  std::span<const std::byte> pushed_;
  std::uint32_t variable_ = 0;                     ///< the push constants
  std::uint32_t block_ = 0;                        ///< their struct
  std::map<std::uint32_t, std::uint32_t> places_;  ///< of pointers: the byte that they point to
  std::vector<std::uint32_t> body_;
};

}  // namespace

std::vector<std::uint32_t> with_pushed_numbers(std::span<const std::uint32_t> words, std::uint32_t first,
                                               std::span<const std::byte> pushed) {
  return PushRewriter(words, first, pushed).finish();
}

}  // namespace halfstep::vk
