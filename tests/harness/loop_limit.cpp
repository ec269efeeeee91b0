#include "harness/loop_limit.h"

#include <map>
#include <set>
#include <utility>

#include "vk/shader/spirv.h"

namespace halfstep::testing {
namespace {

using vk::Instruction;
using enum vk::Op;
using enum vk::StorageClass;

/// The facts about a module that rewriting needs.
struct Found {
  std::uint32_t bool_type = 0;
  std::uint32_t uint_type = 0;
  std::uint32_t uint_pointer = 0;                   ///< to private memory
  std::map<std::uint32_t, std::uint32_t> merges;    ///< of loops: label of the header, label that follows the loop
  std::map<std::uint32_t, std::uint32_t> new_edge;  ///< block that gets an edge to a merge block: that block
  std::set<std::uint32_t> phi_types;
};

Found look_through(std::span<const std::uint32_t> words) {
  Found found;
  std::uint32_t block = 0;
  vk::for_each_instruction(words, [&](const Instruction& i) {
    if (i.opcode == op_type_bool) found.bool_type = i.operand(1);
    if (i.opcode == op_type_int && i.operand(2) == 32 && i.operand(3) == 0) found.uint_type = i.operand(1);
    if (i.opcode == op_type_pointer && i.operand(2) == storage_private && i.operand(3) == found.uint_type)
      found.uint_pointer = i.operand(1);
    if (i.opcode == op_label) block = i.operand(1);
    if (i.opcode == op_phi) found.phi_types.insert(i.operand(1));
    if (i.opcode == op_loop_merge) found.merges[block] = i.operand(1);
    // A branch to a header that has already been visited closes its loop.
    if (i.opcode == op_branch && found.merges.contains(i.operand(1)))
      found.new_edge[block] = found.merges.at(i.operand(1));
  });
  return found;
}

class Writer {
 public:
  Writer(std::span<const std::uint32_t> words, std::uint32_t limit)
      : words_(words), found_(look_through(words)), next_id_(words[3]), limit_(limit) {}

  std::vector<std::uint32_t> write() {
    if (found_.merges.empty()) return {words_.begin(), words_.end()};
    result_.assign(words_.begin(), words_.begin() + vk::spirv_header_words);
    vk::for_each_instruction(words_, [&](const Instruction& i) { visit(i); });
    result_[3] = next_id_;
    return std::move(result_);
  }

 private:
  void visit(const Instruction& i) {
    if (i.opcode == op_function && counter_ == 0) declare();
    if (i.opcode == op_label) block_ = i.operand(1);
    if (i.opcode == op_branch && closes(i.operand(1))) return close(i.operand(1));
    if (i.opcode == op_branch_conditional && (closes(i.operand(2)) || closes(i.operand(3))))
      return close_conditional(i);
    if (i.opcode == op_loop_merge) {
      open_.insert(block_);
      merge_ = i.words;
      return;
    }
    if (i.opcode == op_phi) return phi(i);
    append_merge();
    append(i.words);
  }

  /// A loop's merge instruction comes directly before the branch that ends its header, which may also close the loop.
  void append_merge() { append(std::exchange(merge_, {})); }

  bool closes(std::uint32_t label) const { return open_.contains(label); }

  void declare() {
    if (found_.bool_type == 0) append(op_type_bool, {found_.bool_type = next_id_++});
    if (found_.uint_type == 0) append(op_type_int, {found_.uint_type = next_id_++, 32, 0});
    if (found_.uint_pointer == 0)
      append(op_type_pointer, {found_.uint_pointer = next_id_++, storage_private, found_.uint_type});
    zero_ = constant(0);
    one_ = constant(1);
    const std::uint32_t limit = constant(limit_);
    for (const std::uint32_t type : found_.phi_types) append(op_undef, {type, undefined_[type] = next_id_++});
    counter_ = next_id_++;
    append(op_variable, {found_.uint_pointer, counter_, storage_private, limit});
  }

  std::uint32_t constant(std::uint32_t value) {
    append(op_constant, {found_.uint_type, next_id_, value});
    return next_id_++;
  }

  /// Counts a round; returns the id of whether another round is allowed.
  std::uint32_t count() {
    const std::uint32_t left = next_id_++;
    const std::uint32_t less = next_id_++;
    const std::uint32_t more = next_id_++;
    append(op_load, {found_.uint_type, left, counter_});
    append(op_i_sub, {found_.uint_type, less, left, one_});
    append(op_store, {counter_, less});
    append(op_s_greater_than, {found_.bool_type, more, less, zero_});
    return more;
  }

  void close(std::uint32_t header) {
    const std::uint32_t more = count();
    append_merge();
    append(op_branch_conditional, {more, header, found_.merges.at(header)});
  }

  void close_conditional(const Instruction& i) {
    const std::uint32_t more = count();
    const std::uint32_t condition = next_id_++;
    if (closes(i.operand(2))) {
      append(op_logical_and, {found_.bool_type, condition, i.operand(1), more});
    } else {
      const std::uint32_t none = next_id_++;
      append(op_logical_not, {found_.bool_type, none, more});
      append(op_logical_or, {found_.bool_type, condition, i.operand(1), none});
    }
    append_merge();
    append(op_branch_conditional, {condition, i.operand(2), i.operand(3)});
  }

  /// A phi in a block after a loop needs a value for the new edge: any value, since the loop was ended early.
  void phi(const Instruction& i) {
    std::vector<std::uint32_t> operands(i.words.begin() + 1, i.words.end());
    for (const auto& [from, to] : found_.new_edge) {
      if (to != block_) continue;
      operands.push_back(undefined_.at(i.operand(1)));
      operands.push_back(from);
    }
    append(op_phi, operands);
  }

  void append(std::span<const std::uint32_t> words) { result_.insert(result_.end(), words.begin(), words.end()); }

  void append(std::uint32_t op, const std::vector<std::uint32_t>& operands) {
    result_.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | op);
    result_.insert(result_.end(), operands.begin(), operands.end());
  }

  std::span<const std::uint32_t> words_;
  Found found_;
  std::uint32_t next_id_;
  std::uint32_t limit_;
  std::vector<std::uint32_t> result_;
  std::span<const std::uint32_t> merge_;              ///< the merge instruction, until the branch after it
  std::map<std::uint32_t, std::uint32_t> undefined_;  ///< from a type to an undefined value of it
  std::set<std::uint32_t> open_;                      ///< headers of loops visited so far
  std::uint32_t block_ = 0;
  std::uint32_t counter_ = 0;
  std::uint32_t zero_ = 0;
  std::uint32_t one_ = 0;
};

}  // namespace

std::vector<std::uint32_t> with_loop_limit(std::span<const std::uint32_t> words, std::uint32_t limit) {
  return Writer(words, limit).write();
}

}  // namespace halfstep::testing
