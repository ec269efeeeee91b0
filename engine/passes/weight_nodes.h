#pragma once

#include <vector>

#include "graph/ir.h"

namespace halfstep::passes {

/// A graph split in two, with the values of both. The first part depends only on parameters and states, such as weights
/// with folded batch norms. The second part is the rest, and has the first part's results as parameters, under names
/// that no other value has.
struct WeightSplit {
  graph::Ir weights;
  graph::Ir rest;
  std::vector<graph::ValueId> made;  ///< computed by the first part, read by the second
};

WeightSplit split_at_weights(const graph::Ir& ir);

}  // namespace halfstep::passes
