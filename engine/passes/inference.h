#pragma once

#include <functional>

#include "passes/precision.h"

namespace halfstep::passes {

/// A graph in which the nodes that `chosen` selects are in evaluation mode: training-only behaviour is removed, and
/// batch norm is folded. States that only those nodes would update do not change.
LoweredPrecision for_inference(const LoweredPrecision& training, const std::function<bool(const graph::Node&)>& chosen);

}  // namespace halfstep::passes
