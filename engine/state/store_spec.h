#pragma once

#include <halfstep/optimizer.h>
#include <halfstep/precision.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "state/caches.h"
#include "state/gradient_scales.h"
#include "state/parameters.h"
#include "state/shard.h"
#include "state/step_state.h"

namespace halfstep::state {

/// How the parameters and the states of a graph lie in their stores, and what updates them.
struct StoreLayout {
  ParameterLayout parameters;
  ParameterLayout states;
  /// The trainer's, then the others that parameters have (Training::optimizer); none where nothing is trained.
  std::vector<Optimizer> optimizers{};
  CacheLayout caches{};          ///< of programs over the store that have some; they are in no store
  std::optional<Shard> shard{};  ///< where other ranks keep parts of the masters and moments

  /// What is updated of a run: all of it, or this rank's parts.
  std::vector<Part> parts(const ParameterRun& run) const;
  /// The place of an element in the buffer of masters, which has it.
  std::uint64_t master_place(std::uint64_t element) const;

  /// The entries of an optimizer's schedule in the store's.
  std::uint64_t first_rate(std::size_t optimizer) const;
  /// Bytes of the StepState with the OptimizerStates after it.
  std::uint64_t state_bytes() const;
};

/// How a store is kept: all that its buffers and their sizes follow from.
struct StoreSpec {
  StoreLayout layout;
  Precision precision;  ///< what programs over the store are lowered for
  WeightStorage weights;
  std::uint32_t micro_batches = 1;  ///< in a step
  bool exchanged = false;           ///< whether ranks exchange gradients and states
  /// Where the layout has a shard: gives and gets parts of what is read.
  std::shared_ptr<Exchange> exchange{};
  bool averages = false;         ///< whether averages of the weights are kept
  std::uint64_t data_bytes = 0;  ///< of a data set that is kept on the device

  /// Elements that are trained, with their padding.
  std::uint64_t trained() const { return layout.parameters.trained_elements(); }
  std::uint64_t compute_bytes() const { return static_cast<std::uint64_t>(bytes(weights.compute)); }
  std::uint64_t moment_bytes() const { return static_cast<std::uint64_t>(bytes(weights.moments)); }
  /// Stores that states' next values take turns in.
  std::uint64_t next_states() const { return micro_batches > 1 ? 2 : 1; }
  /// Elements of the buffers of masters and moments.
  std::uint64_t master_elements() const;
  std::uint64_t moment_elements() const;
};

}  // namespace halfstep::state
