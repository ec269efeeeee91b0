#pragma once

#include <vector>

#include "graph/ir.h"

namespace halfstep::passes {

/// A graph in two, with the values of the whole: what follows from parameters and states alone, as the weights that
/// batch norms were folded into do, and the rest, which takes those values as parameters: under names that no other
/// value has.
struct WeightSplit {
  graph::Ir weights;
  graph::Ir rest;
  std::vector<graph::ValueId> made;  ///< by the first, for the second
};

WeightSplit split_at_weights(const graph::Ir& ir);

}  // namespace halfstep::passes
