#include "state/extents.h"

#include <algorithm>

namespace halfstep::state {
namespace {

constexpr std::uint64_t block_elements = 128;

std::uint64_t width_of(DType dtype) {
  return static_cast<std::uint64_t>(bytes(dtype));
}

/// Of all elements, unless a rank has parts of them.
std::vector<Held> held_elements(const std::vector<Held>* of_shard, std::uint64_t all) {
  return of_shard != nullptr ? *of_shard : std::vector<Held>{{0, all, 0}};
}

/// Appends what `held` has of the elements from `first` to before `end`.
void add(Extents& result, const std::vector<Held>& held, std::uint64_t first, std::uint64_t end, std::uint64_t width,
         std::uint64_t block) {
  for (const Held& each : held) {
    const std::uint64_t from = std::max(first, each.first);
    const std::uint64_t to = std::min(end, each.first + each.count);
    if (from >= to) continue;
    const std::uint64_t place = each.place + (from - each.first);
    result.push_back({place * width, (place + (to - from)) * width, block});
  }
}

/// Where a parameter's elements end, padding included.
std::uint64_t end_of(const ParameterLayout& layout, std::size_t entry) {
  const bool last = entry + 1 == layout.entries().size();
  return last ? layout.padded_elements() : layout.entries()[entry + 1].first_element;
}

Extents sorted(Extents extents) {
  std::ranges::sort(extents, {}, &Extent::first);
  return extents;
}

/// Of `copies` of a layout one after the other.
Extents extents_of(const ParameterLayout& layout, DType dtype, std::uint64_t copies = 1) {
  const std::uint64_t width = width_of(dtype);
  Extents result;
  for (std::uint64_t copy = 0; copy < copies; ++copy) {
    const std::uint64_t before = copy * layout.padded_elements();
    for (std::size_t i = 0; i < layout.entries().size(); ++i) {
      result.push_back({(before + layout.entries()[i].first_element) * width, (before + end_of(layout, i)) * width,
                        block_elements * width});
    }
  }
  return result;
}

}  // namespace

namespace extents {

Extents computed(const StoreLayout& layout, const WeightStorage& weights) {
  return extents_of(layout.parameters, weights.compute);
}

Extents wide(const StoreLayout& layout, const WeightStorage& /*weights*/) {
  return extents_of(layout.parameters, DType::f32);
}

Extents masters(const StoreLayout& layout, const WeightStorage& /*weights*/) {
  const ParameterLayout& parameters = layout.parameters;
  const std::vector<Held> held =
      held_elements(layout.shard ? &layout.shard->masters() : nullptr, parameters.master_elements());
  const std::uint64_t width = width_of(DType::f32);
  Extents result;
  for (std::size_t i = 0; i < parameters.entries().size(); ++i) {
    add(result, held, parameters.entries()[i].first_element, end_of(parameters, i), width, block_elements * width);
  }
  return sorted(std::move(result));
}

Extents moments(const StoreLayout& layout, const WeightStorage& weights) {
  const ParameterLayout& parameters = layout.parameters;
  const std::vector<Held> held =
      held_elements(layout.shard ? &layout.shard->moments() : nullptr, parameters.moment_elements());
  const std::uint64_t width = width_of(weights.moments);
  Extents result;
  for (std::size_t i = 0; i < parameters.entries().size(); ++i) {
    const ParameterEntry& entry = parameters.entries()[i];
    if (entry.training.frozen) continue;
    const std::uint64_t of_each = entry.training.states;
    const std::uint64_t end = entry.first_moment + (end_of(parameters, i) - entry.first_element) * of_each;
    // A rule in operators updates a parameter as a whole, whose windows know of no block.
    const bool whole = layout.optimizers[entry.training.optimizer]->in_operators();
    add(result, held, entry.first_moment, end, width, block_elements * (whole ? 1 : of_each) * width);
  }
  return sorted(std::move(result));
}

Extents states(const StoreLayout& layout, const WeightStorage& /*weights*/) {
  return extents_of(layout.states, DType::f32);
}

Extents next_states(const StoreLayout& layout, const WeightStorage& /*weights*/) {
  return extents_of(layout.states, DType::f32, 2);
}

}  // namespace extents

std::vector<std::uint64_t> part_begins(const Extents& tensors, std::uint64_t part_bytes) {
  std::vector<std::uint64_t> begins;
  if (part_bytes == 0) return begins;
  std::uint64_t begin = 0;
  const auto begin_at = [&](std::uint64_t place) {
    begin = place;
    begins.push_back(place);
  };
  for (const Extent& tensor : tensors) {
    if (tensor.end - begin <= part_bytes) continue;
    if (tensor.first > begin) begin_at(tensor.first);
    const std::uint64_t most = std::max(part_bytes / tensor.block, std::uint64_t{1}) * tensor.block;
    while (tensor.end - begin > part_bytes) begin_at(begin + most);
  }
  return begins;
}

}  // namespace halfstep::state
