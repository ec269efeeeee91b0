#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "graph/ir.h"

namespace halfstep::passes {

/// Makes the backward pass recompute values that the forward pass would otherwise keep for it: the results of operators
/// in each scope that matches `pattern` (the outermost match, with everything in it) are recomputed from the inputs of
/// that scope. The outputs of the scope are kept, and so are the values in `wanted`. An operator without parameters
/// belongs to the scope of its newest input. The first `forward_nodes` nodes are the forward pass. Throws Error if no
/// scope matches.
void recompute(graph::Ir& ir, std::size_t forward_nodes, std::string_view pattern,
               std::span<const graph::ValueId> wanted);

}  // namespace halfstep::passes
