#pragma once

#include <halfstep/graph.h>
#include <halfstep/trainer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "step/step_program.h"

namespace halfstep::train {

/// Of a step: more than anyone can want recorded into one.
inline constexpr std::int64_t most_micro_batches = 1024;

/// Applies the precision policy and adds the backward pass. `length` is a bucket's (see sample_inputs). Throws Error
/// for whatever cannot be trained as asked.
step::StepGraph training_graph(const Graph& graph, const TrainerOptions& options, std::int64_t length = 0);

/// The same graph as it is evaluated: with running statistics, and without gradients.
step::StepGraph evaluation_graph(const Graph& graph, const TrainerOptions& options, std::int64_t length = 0);

/// Throws Error where the policy asks for what cannot be, or would change nothing.
void check_precision(const Precision& precision, const std::vector<Optimizer>& optimizers);
/// Throws Error where a loss scale cannot be, or not with that optimizer.
void check_scale(const LossScale& scale, const Optimizer& optimizer);
/// Whether neither it nor its reciprocal is 0 on any device, as what gradients are multiplied and divided by: some take
/// a subnormal number for 0, and reproducible programs 2^-126 too.
bool is_loss_scale(float scale);

/// A line for each hyperparameter that f16 would lose, or change by more than a tenth, where the policy keeps
/// parameters in f16: with what it would be, and what is really used.
std::vector<std::string> hyperparameter_notes(const TrainerOptions& options, const std::vector<Optimizer>& optimizers);

/// Throws Error unless the tensors among the options are values of `graph`, naming the one that is not, and the
/// training set is one.
void check_values(const Graph& graph, const TrainerOptions& options);

/// Throws Error where a hyperparameter is out of its range, naming it.
void check_options(const TrainerOptions& options);

}  // namespace halfstep::train
