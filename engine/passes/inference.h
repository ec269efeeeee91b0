#pragma once

#include <functional>

#include "passes/precision.h"

namespace halfstep::passes {

/// A graph in which the nodes that `chosen` picks are as in evaluation: what operators do in training only is left out,
/// and batch norm is folded. States that only those would update stay as they are.
LoweredPrecision for_inference(const LoweredPrecision& training, const std::function<bool(const graph::Node&)>& chosen);

}  // namespace halfstep::passes
