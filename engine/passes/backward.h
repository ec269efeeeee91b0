#pragma once

#include <map>
#include <span>
#include <vector>

#include "graph/ir.h"

namespace halfstep::passes {

/// Appends to `ir` the operators that compute the gradient of `loss` for each of `parameters`; `seed` is the gradient
/// of the loss itself: the loss scale. Returns the gradients, in the order of `parameters`. Throws Error if the loss
/// does not depend on one of them.
std::vector<graph::ValueId> add_backward(graph::Ir& ir, graph::ValueId loss, graph::ValueId seed,
                                         std::span<const graph::ValueId> parameters);

/// The nodes that `wanted` values depend on, in a valid order of execution.
std::vector<graph::NodeId> needed_nodes(const graph::Ir& ir, std::span<const graph::ValueId> wanted);

}  // namespace halfstep::passes
