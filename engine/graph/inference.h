#pragma once

#include "graph/precision_pass.h"

namespace halfstep::graph {

/// A graph for evaluation: what operators do in training only is left out, and batch norm is folded.
LoweredPrecision for_inference(const LoweredPrecision& training);

}  // namespace halfstep::graph
