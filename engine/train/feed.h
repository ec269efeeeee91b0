#pragma once

#include <halfstep/trainer.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "step/step_inputs.h"
#include "step/step_program.h"

namespace halfstep::train {

/// What training is fed from: a set, a source, or neither.
struct TrainingData {
  explicit TrainingData(const TrainerOptions& options);

  std::string name;
  std::int64_t count = 0;     ///< samples of an epoch; 0: unbounded
  std::vector<Field> fields;  ///< empty where there is neither
  const Source* source = nullptr;
};

/// Throws Error unless every input that the feed names is a value of `ir`, and there is one.
void check_feed_values(const Feed& feed, const graph::Ir& ir);

/// The inputs that a feed fills, by the fields of `data`, or by what their types suggest where it has none. Inputs of
/// `length` along a sample's first axis, where that is positive, read so much of longer fields. Throws Error unless
/// they are inputs of `ir`, each of one batch, and every field can be converted to its input as the feed asks.
step::SampleInputs sample_inputs(const Feed& feed, const graph::Ir& ir, const TrainingData& data, std::int64_t length);

/// The fields of a set that `graph`, which has samples, is fed from, in the order of its inputs, as much of each as is
/// read. Throws Error where one is missing, of another type or shape, or has a label that stands for no class. `where`
/// begins the text.
std::vector<Field> fed_fields(std::string_view where, const Dataset& set, const step::StepGraph& graph);

}  // namespace halfstep::train
