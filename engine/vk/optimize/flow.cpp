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

std::vector<std::uint32_t> constructs(const Function& function, const Flow& flow) {
  std::vector<std::uint32_t> result(function.blocks.size(), Flow::none);
  for (const std::uint32_t b : flow.tree()) {
    // A construct of a dominator ends where its merge block dominates.
    for (std::uint32_t header = flow.immediate_dominator(b); header != Flow::none; header = result[header]) {
      const Instruction* merge = function.blocks[header].merge();
      if (merge == nullptr) continue;
      const std::uint32_t end = flow.block_of(merge->operands[0]);
      if (flow.is_reachable(end) && flow.dominates(end, b)) continue;
      result[b] = header;
      break;
    }
  }
  return result;
}

}  // namespace halfstep::vk::ir
