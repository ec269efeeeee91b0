#include "vk/optimize/flow.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "vk/optimize/grammar.h"

namespace halfstep::vk::ir {

Flow::Flow(const Function& function) {
  const std::size_t count = function.blocks.size();
  successors_.resize(count);
  predecessors_.resize(count);
  for (std::uint32_t b = 0; b < count; ++b) blocks_[function.blocks[b].label] = b;
  for (std::uint32_t b = 0; b < count; ++b) {
    for_each_target(function.blocks[b].terminator(), [&](Id label) { successors_[b].push_back(blocks_.at(label)); });
  }
  find_order();
  for (const std::uint32_t b : order_) {
    for (const std::uint32_t next : successors_[b]) predecessors_[next].push_back(b);
  }
  find_dominators();
  find_tree();
}

void Flow::find_order() {
  order_of_.assign(successors_.size(), none);
  std::vector<bool> seen(successors_.size(), false);
  std::vector<std::pair<std::uint32_t, std::size_t>> path{{0, 0}};  // blocks, and their next edge
  seen[0] = true;
  while (!path.empty()) {
    auto& [block, edge] = path.back();
    if (edge == successors_[block].size()) {
      order_.push_back(block);
      path.pop_back();
      continue;
    }
    const std::uint32_t next = successors_[block][edge++];
    if (seen[next]) continue;
    seen[next] = true;
    path.emplace_back(next, 0);
  }
  std::ranges::reverse(order_);
  for (std::uint32_t place = 0; place < order_.size(); ++place) order_of_[order_[place]] = place;
}

std::uint32_t Flow::common_dominator(std::uint32_t a, std::uint32_t b) const {
  while (a != b) {
    if (order_of_[a] > order_of_[b]) {
      a = dominators_[a];
    } else {
      b = dominators_[b];
    }
  }
  return a;
}

void Flow::find_dominators() {  // as Cooper, Harvey and Kennedy do
  dominators_.assign(successors_.size(), none);
  dominators_[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::uint32_t b : order_) {
      if (b == 0) continue;
      std::uint32_t nearest = none;
      for (const std::uint32_t before : predecessors_[b]) {
        if (dominators_[before] != none) nearest = nearest == none ? before : common_dominator(nearest, before);
      }
      changed |= dominators_[b] != nearest;
      dominators_[b] = nearest;
    }
  }
  dominators_[0] = none;
}

void Flow::find_tree() {
  std::vector<std::vector<std::uint32_t>> below(successors_.size());
  for (const std::uint32_t b : order_) {
    if (b != 0) below[dominators_[b]].push_back(b);
  }
  first_.assign(successors_.size(), 0);
  last_.assign(successors_.size(), 0);
  std::vector<std::uint32_t> waiting{0};
  while (!waiting.empty()) {
    const std::uint32_t b = waiting.back();
    waiting.pop_back();
    first_[b] = last_[b] = static_cast<std::uint32_t>(tree_.size());
    tree_.push_back(b);
    waiting.insert(waiting.end(), below[b].rbegin(), below[b].rend());
  }
  for (auto b = tree_.rbegin(); b != tree_.rend(); ++b) {
    if (*b != 0) last_[dominators_[*b]] = std::max(last_[dominators_[*b]], last_[*b]);
  }
}

bool is_structured(const Function& function) {
  const Flow flow(function);
  std::unordered_set<Id> named;
  for (const std::uint32_t b : flow.order()) {
    const Instruction* merge = function.blocks[b].merge();
    const bool is_loop = merge != nullptr && merge->opcode == op_loop_merge;
    std::size_t back = 0;
    for (const std::uint32_t before : flow.predecessors(b)) {
      if (!flow.leads_back(before, b)) continue;
      ++back;
      if (!is_loop || back > 1 || !flow.dominates(b, before)) return false;
    }
    for (std::size_t at = 0; merge != nullptr && at < (is_loop ? 2U : 1U); ++at) {
      const Id label = merge->operands[at];
      const std::uint32_t block = flow.block_of(label);
      const bool own = block == b && at == 0;  // a loop may be its own continue target
      if (own || !named.insert(label).second || (flow.is_reachable(block) && !flow.dominates(b, block))) return false;
    }
  }
  return true;
}

namespace {

/// Of a block that is the header of a construct: the blocks where that ends and, of a loop, continues; none where
/// control does not come to them.
struct Ends {
  std::uint32_t merge = Flow::none;
  std::uint32_t next_round = Flow::none;
};

Ends ends_of(const Instruction& merge, const Flow& flow) {
  const auto reachable = [&](Id label) {
    const std::uint32_t block = flow.block_of(label);
    return flow.is_reachable(block) ? block : Flow::none;
  };
  const bool loop = merge.opcode == op_loop_merge;
  return {reachable(merge.operands[0]), loop ? reachable(merge.operands[1]) : Flow::none};
}

}  // namespace

std::vector<std::uint32_t> constructs(const Function& function, const Flow& flow) {
  std::vector<std::uint32_t> result(function.blocks.size(), Flow::none);
  for (const std::uint32_t b : flow.tree()) {
    const std::uint32_t dominator = flow.immediate_dominator(b);
    if (dominator == Flow::none) continue;
    const auto is_before = [&](std::uint32_t end) { return end != Flow::none && flow.dominates(end, b); };
    // Of the constructs around the dominator, from the innermost: one that ends before the block ends those in it, too,
    // of which several may be left at once; and so does one that continues.
    const bool is_header = function.blocks[dominator].merge() != nullptr;
    std::uint32_t inside = is_header ? dominator : result[dominator];
    for (std::uint32_t header = inside; header != Flow::none; header = result[header]) {
      const Ends ends = ends_of(*function.blocks[header].merge(), flow);
      if (is_before(ends.merge)) {
        inside = result[header];
      } else if (is_before(ends.next_round) && !flow.dominates(ends.next_round, inside)) {
        inside = header;
      }
    }
    result[b] = inside;
  }
  return result;
}

}  // namespace halfstep::vk::ir
