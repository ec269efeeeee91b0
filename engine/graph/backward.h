#pragma once

#include <map>
#include <span>
#include <vector>

#include "graph/ir.h"

namespace halfstep::graph {

/// Appends to `ir` the operators that compute the gradient of `loss` for each of `parameters`; `seed` is the gradient
/// of the loss itself: the loss scale. Returns the gradients, in the order of `parameters`. Throws Error where the loss
/// does not depend on one of them.
std::vector<ValueId> add_backward(Ir& ir, ValueId loss, ValueId seed, std::span<const ValueId> parameters);

/// The nodes that `wanted` values depend on, in an order they can run in.
std::vector<NodeId> needed_nodes(const Ir& ir, std::span<const ValueId> wanted);

}  // namespace halfstep::graph
