#pragma once

#include <span>
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

/// Stores of weights have a place for results in f32 and in `parameters`, and the second part computes what is
/// `wanted`: a node of another type, or that computes one of these, belongs to the second part.
WeightSplit split_at_weights(const graph::Ir& ir, DType parameters, std::span<const graph::ValueId> wanted);

}  // namespace halfstep::passes
