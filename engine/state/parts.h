#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "state/buffers.h"

namespace halfstep::state {

/// Where the buffers of a store begin anew: a device has no buffers larger than some size. No dispatch may bind a range
/// that lies in two parts.
class Parts {
 public:
  /// Of a device whose largest buffer has `part_bytes`, see Target::part_bytes.
  Parts(const StoreLayout& layout, const WeightStorage& weights, std::uint64_t part_bytes);

  /// In bytes, each part after the first; those at the buffer's end and after it do not count.
  const std::vector<std::uint64_t>& begins(plan::BufferId buffer) const { return begins_[buffer]; }
  /// Bytes from `offset` to where the next part begins.
  std::uint64_t left(plan::BufferId buffer, std::uint64_t offset) const;

 private:
  std::array<std::vector<std::uint64_t>, buffers::table.size()> begins_;
};

}  // namespace halfstep::state
