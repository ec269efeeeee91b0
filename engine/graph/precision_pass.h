#pragma once

#include <halfstep/precision.h>

#include <vector>

#include "graph/ir.h"

namespace halfstep::graph {

/// A graph in the types it is computed in.
struct LoweredPrecision {
  Ir ir;
  std::vector<ValueId> value;  ///< for each value of the graph as written, its value in `ir`
};

/// Rewrites a graph for a policy: parameters and inputs take the type the policy computes in, and casts are put where
/// an operator is given another. States stay f32. Operators that work in f32 inside (Numerics::as_is) take what there
/// is.
LoweredPrecision apply_precision(const Ir& written, const Precision& precision);

}  // namespace halfstep::graph
