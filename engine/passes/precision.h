#pragma once

#include <halfstep/precision.h>

#include <span>
#include <string>
#include <vector>

#include "graph/ir.h"

namespace halfstep::passes {

/// A graph with the types it is computed in; each node's `why` has the reason for its type.
struct LoweredPrecision {
  graph::Ir ir;
  std::vector<graph::ValueId> value;  ///< for each value of the graph as written, its value in `ir`
  std::vector<std::string> reduced;   ///< one line for each operator that left f32: "conv1 forward f32 -> f16"
};

/// Applies the operator of a node of `from` to tensors of another graph. Throws Error where its results differ from the
/// node's in number or shape, on which the graph as written relies: an application's operator may answer otherwise.
std::vector<Tensor> applied_again(const graph::Ir& from, const graph::Node& node, std::span<const Tensor> inputs);

/// Rewrites a graph for a policy. Parameters and inputs take the types that operators read them in, and a cast is
/// inserted wherever an operator's input has another type than it computes in. States stay f32. Operators on no list
/// (Numerics::as_is) accept any type. Throws Error for operators with inputs of two types given by hand, unless the
/// policy promotes.
LoweredPrecision apply_precision(const graph::Ir& written, const Precision& precision);

/// Throws Error for a layer or operator that a policy names and the graph does not have, or only in operators on no
/// list: such a choice would be ignored silently. For the graph that a policy was made for; others may be parts of it.
void check_names(const graph::Ir& written, const Precision& precision);

}  // namespace halfstep::passes
