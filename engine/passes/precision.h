#pragma once

#include <halfstep/precision.h>

#include <string>
#include <vector>

#include "graph/ir.h"

namespace halfstep::passes {

/// A graph in the types it is computed in; each node's `why` says what decided on its type.
struct LoweredPrecision {
  graph::Ir ir;
  std::vector<graph::ValueId> value;  ///< for each value of the graph as written, its value in `ir`
  std::vector<std::string> reduced;   ///< a line for each operator that f32 was taken from: "conv1 forward f32 -> f16"
};

/// Rewrites a graph for a policy: parameters and inputs take the types that operators read them in, and casts are put
/// where an operator is given another type than it works in. States stay f32. Operators on no list (Numerics::as_is)
/// take what there is. Throws Error for operators that were given two types by hand, unless the policy promotes, and
/// for layers and operators that the policy names and the graph does not have.
LoweredPrecision apply_precision(const graph::Ir& written, const Precision& precision);

}  // namespace halfstep::passes
