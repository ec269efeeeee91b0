#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "graph/ir.h"

namespace halfstep::passes {

/// Has the backward pass compute again what the forward pass would have to keep for it: the results of operators in
/// each scope that matches `pattern` (the outermost that does, with all that is in it), from what enters that scope.
/// What leaves it is kept, and so are the values in `wanted`. An operator without parameters belongs to the scope that
/// its newest input comes from. The first `forward_nodes` nodes are the forward pass. Throws Error where no scope
/// matches.
void recompute(graph::Ir& ir, std::size_t forward_nodes, std::string_view pattern,
               std::span<const graph::ValueId> wanted);

}  // namespace halfstep::passes
