#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "vk/optimize/instruction.h"

namespace halfstep::vk::ir {

/// How control flows between the blocks of a function, which are known by their places in it. Valid until the
/// function's blocks or terminators change.
class Flow {
 public:
  static constexpr std::uint32_t none = 0xffffffff;

  explicit Flow(const Function& function);

  /// Throws std::out_of_range where there is no such block.
  std::uint32_t block_of(Id label) const { return blocks_.at(label); }
  const std::vector<std::uint32_t>& successors(std::uint32_t block) const { return successors_[block]; }
  /// Without those that cannot be reached; each as often as it has edges.
  const std::vector<std::uint32_t>& predecessors(std::uint32_t block) const { return predecessors_[block]; }
  bool is_reachable(std::uint32_t block) const { return order_of_[block] != none; }
  /// Whether an edge leads back to a block that is not after it in order().
  bool leads_back(std::uint32_t from, std::uint32_t to) const { return order_of_[to] <= order_of_[from]; }
  /// The blocks that can be reached, in reverse postorder.
  const std::vector<std::uint32_t>& order() const { return order_; }
  /// The nearest other block that is on every way to this one; none for the first.
  std::uint32_t immediate_dominator(std::uint32_t block) const { return dominators_[block]; }
  /// Whether `a` is on every way to `b`, or is `b`. Of blocks that can be reached.
  bool dominates(std::uint32_t a, std::uint32_t b) const { return first_[a] <= first_[b] && last_[b] <= last_[a]; }
  /// Blocks that can be reached, each before those it dominates, which follow it together.
  const std::vector<std::uint32_t>& tree() const { return tree_; }

 private:
  void find_order();
  void find_dominators();
  void find_tree();
  std::uint32_t common_dominator(std::uint32_t a, std::uint32_t b) const;

  std::unordered_map<Id, std::uint32_t> blocks_;
  std::vector<std::vector<std::uint32_t>> successors_;
  std::vector<std::vector<std::uint32_t>> predecessors_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> order_of_;
  std::vector<std::uint32_t> dominators_;
  std::vector<std::uint32_t> tree_;
  std::vector<std::uint32_t> first_;  ///< place in the tree's order, of the block
  std::vector<std::uint32_t> last_;   ///< and of the last that it dominates
};

/// Whether control flows as "Structured control flow" in the SPIR-V specification has it: back to headers of loops
/// only, from one block each, and what a merge instruction names is dominated by its block, and named once.
bool is_structured(const Function& function);

/// The innermost construct that each block is in: the block that is its header, none outside all. Headers and the
/// blocks after a construct are not in it; those of a loop's header are.
std::vector<std::uint32_t> constructs(const Function& function, const Flow& flow);

}  // namespace halfstep::vk::ir
