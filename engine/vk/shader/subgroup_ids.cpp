#include "vk/shader/subgroup_ids.h"

#include <map>

#include "vk/shader/additions.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t built_in_local_invocation_id = 27;
constexpr std::uint32_t built_in_subgroup_size = 36;
constexpr std::uint32_t built_in_subgroup_id = 40;
constexpr std::uint32_t built_in_invocation_in_subgroup = 41;

/// Copies a module, and computes what it reads of gl_LocalInvocationID.
class Rewriter {
 public:
  explicit Rewriter(std::span<const std::uint32_t> words)
      : added_(words), ids_(added_.module().built_in(built_in_local_invocation_id)) {
    if (ids_ != 0) {
      number_ = added_.type({op_type_int, 32, 0});
      size_ = added_.input(number_, built_in_subgroup_size);
      subgroup_ = added_.input(number_, built_in_subgroup_id);
      lane_ = added_.input(number_, built_in_invocation_in_subgroup);
      zero_ = added_.constant(number_, 0);
    }
    for_each_instruction(words, [&](const Instruction& i) { visit(i); });
  }

  std::vector<std::uint32_t> finish() const { return added_.finish(body_); }

 private:
  void visit(const Instruction& i) {
    if (ids_ == 0) return copy(i);
    if (in_capabilities_ && i.opcode != op_capability) {
      in_capabilities_ = false;
      if (!has_capability_) append(body_, op_capability, {capability_group_non_uniform});
    }
    has_capability_ |= i.opcode == op_capability && i.operand(1) == capability_group_non_uniform;
    const bool chain = i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain;
    if (chain && i.operand(3) == ids_) {
      axes_[i.operand(2)] = added_.module().constants.at(i.operand(4));
      return;
    }
    if (i.opcode != op_load) return copy(i);
    if (i.operand(3) == ids_) {
      const std::uint32_t x = along_x(added_.next_id());
      append(body_, op_composite_construct, {i.operand(1), i.operand(2), x, zero_, zero_});
    } else if (const auto axis = axes_.find(i.operand(3)); axis != axes_.end()) {
      if (axis->second == 0) {
        along_x(i.operand(2));
      } else {
        append(body_, op_copy_object, {i.operand(1), i.operand(2), zero_});
      }
    } else {
      copy(i);
    }
  }

  /// The number along x, as `result`.
  std::uint32_t along_x(std::uint32_t result) {
    const std::uint32_t subgroup = loaded(subgroup_);
    const std::uint32_t size = loaded(size_);
    const std::uint32_t lane = loaded(lane_);
    const std::uint32_t first = added_.next_id();
    append(body_, op_i_mul, {number_, first, subgroup, size});
    append(body_, op_i_add, {number_, result, first, lane});
    return result;
  }

  std::uint32_t loaded(std::uint32_t variable) {
    const std::uint32_t value = added_.next_id();
    append(body_, op_load, {number_, value, variable});
    return value;
  }

  void copy(const Instruction& i) { body_.insert(body_.end(), i.words.begin(), i.words.end()); }

  Additions added_;
  std::uint32_t ids_;  ///< the variable gl_LocalInvocationID; 0 if there is none
  std::uint32_t number_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t subgroup_ = 0;
  std::uint32_t lane_ = 0;
  std::uint32_t zero_ = 0;
  std::map<std::uint32_t, std::uint32_t> axes_;  ///< of pointers into gl_LocalInvocationID
  bool in_capabilities_ = true;
  bool has_capability_ = false;
  std::vector<std::uint32_t> body_;
};

}  // namespace

std::vector<std::uint32_t> with_subgroup_ids(std::span<const std::uint32_t> words) {
  return Rewriter(words).finish();
}

}  // namespace halfstep::vk
