#pragma once

#include <functional>

#include "graph/precision_pass.h"

namespace halfstep::graph {

/// A graph in which the nodes that `chosen` picks are as in evaluation: what operators do in training only is left out,
/// and batch norm is folded. States that only those would update stay as they are.
LoweredPrecision for_inference(const LoweredPrecision& training, const std::function<bool(const Node&)>& chosen);

}  // namespace halfstep::graph
