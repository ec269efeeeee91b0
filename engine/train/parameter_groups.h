#pragma once

#include <halfstep/trainer.h>

#include "step/step_program.h"

namespace halfstep::train {

/// Says how each of the graph's parameters is trained, and puts those that are trained alike together, the frozen ones
/// last. Those that the loss of `written`, the graph as it was written, does not depend on are frozen too. Throws Error
/// where a group is for no parameter, or none is left to train.
void group_parameters(step::StepGraph& graph, const graph::Ir& written, const TrainerOptions& options);

/// Whether the parameters that a node reads, as they are or cast, are all frozen, of which it has at least one. What it
/// is applied to, its first input, is none of its own.
bool is_frozen(const graph::Ir& ir, const graph::Node& node, const TrainerOptions& options);

/// Throws Error where a group's numbers are out of their range.
void check_groups(const TrainerOptions& options);

}  // namespace halfstep::train
