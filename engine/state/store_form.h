#pragma once

#include <halfstep/precision.h>

#include <cstdint>
#include <string>
#include <vector>

#include "state/gradient_scales.h"
#include "state/parameters.h"
#include "state/step_state.h"

namespace halfstep::state {

/// How the parameters and the states of a graph lie in their stores.
struct StoreLayout {
  ParameterLayout parameters;
  ParameterLayout states;
};

/// How a store is kept: all that its buffers and their sizes follow from.
struct StoreForm {
  StoreLayout layout;
  Precision precision;  ///< what programs over the store are lowered for
  WeightForm weights;
  std::vector<std::string> moment_names{};  ///< in files: one for each of WeightForm::moments_per_element
  std::vector<float> rates{};               ///< of applied steps, in order; the last one holds
  std::uint32_t micro_batches = 1;          ///< in a step
  bool averages = false;                    ///< whether averages of the weights are kept
  bool averages_read = false;               ///< and operators read them
  std::uint64_t data_bytes = 0;             ///< of a data set that is kept on the device

  /// Elements that are trained, with their padding.
  std::uint64_t trained() const { return layout.parameters.trained_elements(); }
  std::uint64_t compute_bytes() const { return static_cast<std::uint64_t>(bytes(weights.compute)); }
  /// Stores that states' next values take turns in.
  std::uint64_t next_states() const { return micro_batches > 1 ? 2 : 1; }
};

}  // namespace halfstep::state
