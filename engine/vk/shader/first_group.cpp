#include "vk/shader/first_group.h"

#include <halfstep/error.h>

#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t built_in_workgroup_id = 26;

/// Ids of what the rewriting needs, 0 where the module has none.
struct Known {
  std::uint32_t groups = 0;        ///< the variable gl_WorkGroupID
  std::uint32_t pushed = 0;        ///< the variable of the push constants
  std::uint32_t block = 0;         ///< its struct
  std::uint32_t members = 0;       ///< of the struct
  std::uint32_t number = 0;        ///< u32
  std::uint32_t pointer = 0;       ///< to a u32 in the push constants
  std::set<std::uint32_t> zeros;   ///< constants
  std::set<std::uint32_t> blocks;  ///< pointers to the struct
};

Known find(std::span<const std::uint32_t> words) {
  Known known;
  std::map<std::uint32_t, std::uint32_t> members;                             // of structs
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> pointees;  // storage class and type of pointers
  for_each_instruction(words, [&](const Instruction& i) {
    switch (i.opcode) {
      case op_decorate:
        if (i.operand(2) == decoration_built_in && i.operand(3) == built_in_workgroup_id) known.groups = i.operand(1);
        return;
      case op_type_int:
        if (i.operand(2) == 32 && i.operand(3) == 0) known.number = i.operand(1);
        return;
      case op_type_struct:
        members[i.operand(1)] = static_cast<std::uint32_t>(i.words.size() - 2);
        return;
      case op_type_pointer:
        pointees[i.operand(1)] = {i.operand(2), i.operand(3)};
        return;
      case op_constant:
        if (i.words.size() == 4 && i.operand(3) == 0) known.zeros.insert(i.operand(2));
        return;
      case op_variable:
        if (i.operand(3) != storage_push_constant) return;
        known.pushed = i.operand(2);
        known.block = pointees[i.operand(1)].second;
        return;
      default:
        return;
    }
  });
  known.members = members[known.block];
  for (const auto& [id, pointee] : pointees) {
    if (pointee.first != storage_push_constant) continue;
    if (pointee.second == known.block) known.blocks.insert(id);
    if (pointee.second == known.number) known.pointer = id;
  }
  return known;
}

/// Copies a module, and adds the number to what it reads of gl_WorkGroupID.x.
class FirstGroupRewriter {
 public:
  FirstGroupRewriter(std::span<const std::uint32_t> words, std::uint32_t offset)
      : known_(find(words)), offset_(offset), result_(words.begin(), words.begin() + spirv_header_words) {
    if (known_.pushed == 0) fail("shader", "expected push constants in a kernel that is submitted in parts, got none");
    for_each_instruction(words, [&](const Instruction& i) { visit(i); });
  }

  std::vector<std::uint32_t> finish() && { return std::move(result_); }

 private:
  void visit(const Instruction& i) {
    const bool is_type = i.opcode >= op_type_void && i.opcode <= op_type_function;
    if (is_type && !decorated_) {
      decorated_ = true;
      put(op_member_decorate, {known_.block, known_.members, decoration_offset, offset_});
    }
    if (is_of_block(i)) {  // after all other types, since that of the number may come after it
      block_.insert(block_.end(), i.words.begin(), i.words.end());
      return;
    }
    if (i.opcode == op_function && !declared_) declare();
    if (i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain) {
      if (i.operand(3) == known_.groups && known_.zeros.contains(i.operand(4))) places_of_x_.insert(i.operand(2));
    }
    if (i.opcode == op_load && places_of_x_.contains(i.operand(3))) return load_x(i);
    if (i.opcode == op_load && i.operand(3) == known_.groups) return load_all(i);
    copy(i);
  }

  bool is_of_block(const Instruction& i) const {
    if (i.opcode == op_type_struct || i.opcode == op_type_pointer)
      return i.operand(1) == known_.block || known_.blocks.contains(i.operand(1));
    return i.opcode == op_variable && i.operand(2) == known_.pushed;
  }

  /// The push constants with one more member, and what it takes to read that.
  void declare() {
    declared_ = true;
    for (std::size_t at = 0; at < block_.size(); at += block_[at] >> 16) {
      const bool is_struct = (block_[at] & 0xffff) == op_type_struct;
      const std::size_t length = block_[at] >> 16;
      const std::size_t begin = result_.size();
      result_.insert(result_.end(), block_.begin() + static_cast<std::ptrdiff_t>(at),
                     block_.begin() + static_cast<std::ptrdiff_t>(at + length));
      if (!is_struct) continue;
      result_[begin] += 1U << 16;
      result_.push_back(known_.number);
    }
    if (known_.pointer == 0) {
      known_.pointer = fresh();
      put(op_type_pointer, {known_.pointer, storage_push_constant, known_.number});
    }
    member_ = fresh();
    put(op_constant, {known_.number, member_, known_.members});
  }

  std::uint32_t load_first() {
    const std::uint32_t place = fresh();
    const std::uint32_t first = fresh();
    put(op_access_chain, {known_.pointer, place, known_.pushed, member_});
    put(op_load, {known_.number, first, place});
    return first;
  }

  void load_x(const Instruction& i) {
    const std::uint32_t x = fresh();
    put(op_load, {i.operand(1), x, i.operand(3)});
    put(op_i_add, {i.operand(1), i.operand(2), x, load_first()});
  }

  void load_all(const Instruction& i) {
    const std::uint32_t all = fresh();
    const std::uint32_t x = fresh();
    const std::uint32_t sum = fresh();
    put(op_load, {i.operand(1), all, i.operand(3)});
    put(op_composite_extract, {known_.number, x, all, 0});
    put(op_i_add, {known_.number, sum, x, load_first()});
    put(op_composite_insert, {i.operand(1), i.operand(2), sum, all, 0});
  }

  std::uint32_t fresh() { return result_[bound_word]++; }
  void copy(const Instruction& i) { result_.insert(result_.end(), i.words.begin(), i.words.end()); }
  void put(std::uint32_t opcode, std::initializer_list<std::uint32_t> operands) {
    result_.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | opcode);
    result_.insert(result_.end(), operands);
  }

  Known known_;
  std::uint32_t offset_;
  std::uint32_t member_ = 0;  ///< the constant that is the new member's index
  bool decorated_ = false;
  bool declared_ = false;
  std::set<std::uint32_t> places_of_x_;  ///< pointers
  std::vector<std::uint32_t> block_;     ///< the declarations of the push constants
  std::vector<std::uint32_t> result_;
};

}  // namespace

std::vector<std::uint32_t> with_first_group(std::span<const std::uint32_t> words, std::uint32_t offset) {
  return FirstGroupRewriter(words, offset).finish();
}

}  // namespace halfstep::vk
