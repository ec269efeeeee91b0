#pragma once

#include <vector>

#include "graph/ir.h"

namespace halfstep::graph {

/// A graph in two, with the values of the whole: what follows from parameters and states alone, as the weights that
/// batch norms were folded into do, and the rest, which takes those values as inputs.
struct WeightSplit {
  Ir weights;
  Ir rest;
  std::vector<ValueId> made;  ///< by the first, for the second
};

WeightSplit split_at_weights(const Ir& ir);

}  // namespace halfstep::graph
