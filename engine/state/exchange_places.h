#pragma once

#include <cstdint>

#include "state/gradient_scales.h"
#include "state/store_spec.h"

/// Where the buffer "exchange" has what ranks exchange, in bytes: the sums of gradients, then those of states. Where
/// ranks share out the optimizers' states, what they found in the sums of their parts follows, and when the sums have
/// been read, new weights take their place: each at the bytes where its sum began, or those of its neighbours before
/// it.
namespace halfstep::state::exchange_places {

/// Where a binding may start on every device.
inline constexpr std::uint64_t alignment = 256;

inline std::uint64_t states(const StoreLayout& layout) {
  return 4 * layout.parameters.trained_elements();
}
/// A StepState.
inline std::uint64_t step_state(const StoreLayout& layout) {
  return states(layout) + 4 * layout.states.padded_elements();
}
/// A word for each block of gradients, the blocks of gradient_scales.
inline std::uint64_t words(const StoreLayout& layout) {
  const std::uint64_t bytes = 4 * gradient_scales::blocks(layout.parameters);
  return (bytes + alignment - 1) / alignment * alignment;
}
/// Words: the blocks' largest magnitudes.
inline std::uint64_t largest(const StoreLayout& layout) {
  return step_state(layout) + alignment;
}
/// Words: the blocks' norms.
inline std::uint64_t norms(const StoreLayout& layout) {
  return largest(layout) + words(layout);
}
inline std::uint64_t bytes(const StoreLayout& layout) {
  return layout.shard ? norms(layout) + words(layout) : step_state(layout);
}

}  // namespace halfstep::state::exchange_places
