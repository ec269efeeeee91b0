#include "state/store_spec.h"

#include <algorithm>

namespace halfstep::state {

std::uint64_t StoreLayout::first_rate(std::size_t optimizer) const {
  std::uint64_t entries = 0;
  for (std::size_t i = 0; i < optimizer; ++i) entries += optimizers[i]->rate().rates.size();
  return entries;
}

// Kernels may bind an array that is not empty.
std::uint64_t StoreLayout::state_bytes() const {
  return sizeof(StepState) + (std::max<std::size_t>(2, optimizers.size()) - 1) * sizeof(OptimizerState);
}

std::vector<Part> StoreLayout::parts(const ParameterRun& run) const {
  if (shard) return shard->parts(run);
  return {{run.first_element, run.padded_elements, run.first_element, run.first_moment}};
}

std::uint64_t StoreLayout::master_place(std::uint64_t element) const {
  return shard ? place_in(shard->masters(), element) : element;
}

std::uint64_t StoreSpec::master_elements() const {
  if (!weights.copy) return 0;
  return layout.shard ? layout.shard->master_elements() : layout.parameters.master_elements();
}

std::uint64_t StoreSpec::moment_elements() const {
  return layout.shard ? layout.shard->moment_elements() : layout.parameters.moment_elements();
}

}  // namespace halfstep::state
