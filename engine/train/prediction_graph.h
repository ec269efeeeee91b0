#pragma once

#include <halfstep/graph.h>
#include <halfstep/precision.h>

#include "step/step_program.h"

namespace halfstep::train {

/// The graph as it computes one value of `written`, from what that depends on: with running statistics, and with all
/// parameters frozen; and the next values of its caches. Throws Error where `output` is none of its values, or a cache
/// cannot be updated in place.
step::StepGraph prediction_graph(const Graph& written, Tensor output, const Precision& precision);

/// A prediction in two: what follows from weights alone, which is stored under names of its own, and the rest, which
/// reads that.
struct FoldedPrediction {
  step::StepGraph weights;
  step::StepGraph rest;
};
FoldedPrediction fold(const step::StepGraph& prediction, const Precision& precision);

}  // namespace halfstep::train
