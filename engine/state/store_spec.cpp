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

}  // namespace halfstep::state
