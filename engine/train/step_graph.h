#pragma once

#include <halfstep/graph.h>
#include <halfstep/trainer.h>

#include "step/step_program.h"

namespace halfstep::train {

/// Applies the precision policy and adds the backward pass. Throws Error for whatever cannot be trained as asked.
step::StepGraph training_graph(const Graph& graph, const TrainerOptions& options);

/// The same graph as it is evaluated: with running statistics, and without gradients.
step::StepGraph evaluation_graph(const Graph& graph, const TrainerOptions& options);

/// Throws Error where a hyperparameter is out of its range, naming it.
void check_options(const TrainerOptions& options);

}  // namespace halfstep::train
