#include "state/parts.h"

#include <algorithm>
#include <limits>

namespace halfstep::state {

Parts::Parts(const StoreLayout& layout, const WeightStorage& weights, std::uint64_t part_bytes) {
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    const BufferRow& row = buffers::table[i];
    if (row.tensors != nullptr) begins_[i] = part_begins(row.tensors(layout, weights), part_bytes);
  }
}

std::uint64_t Parts::left(plan::BufferId buffer, std::uint64_t offset) const {
  const std::vector<std::uint64_t>& begins = begins_[buffer];
  const auto next = std::ranges::upper_bound(begins, offset);
  return next == begins.end() ? std::numeric_limits<std::uint64_t>::max() : *next - offset;
}

}  // namespace halfstep::state
