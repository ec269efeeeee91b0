#pragma once

#include <cstdint>
#include <vector>

#include "state/store_spec.h"

/// Where tensors lie in the buffers of a store.
namespace halfstep::state {

/// The bytes of a tensor in a buffer, with the padding after it.
struct Extent {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t block = 0;  ///< bytes of a block of 128 elements, or of what is kept for them
};

using Extents = std::vector<Extent>;

/// The tensors of buffers, in the order they lie in. What ranks share out is this rank's.
namespace extents {

/// All parameters in the type that operators read, and in f32.
Extents computed(const StoreLayout& layout, const WeightStorage& weights);
Extents wide(const StoreLayout& layout, const WeightStorage& weights);
Extents masters(const StoreLayout& layout, const WeightStorage& weights);
Extents moments(const StoreLayout& layout, const WeightStorage& weights);
Extents states(const StoreLayout& layout, const WeightStorage& weights);
/// Two of each, all first ones first.
Extents next_states(const StoreLayout& layout, const WeightStorage& weights);

}  // namespace extents

/// The bytes at which a buffer of these tensors, which lie in it one after the other, begins anew, if it may have no
/// more than `part_bytes` at once: each tensor lies in one part. One that is larger begins a part, and others after
/// every `part_bytes`, so that its windows lie in one part each (plan/windows.h), or after as many whole blocks as that
/// has. Empty where all fit, or where `part_bytes` is 0.
std::vector<std::uint64_t> part_begins(const Extents& tensors, std::uint64_t part_bytes);

}  // namespace halfstep::state
