#pragma once

#include <halfstep/trainer_options.h>

#include <cstdint>
#include <string>
#include <vector>

#include "step/step_program.h"

namespace halfstep::train {

/// What must be the same on every rank: its name, and what it is here, for a person and as a number.
struct RankFact {
  std::string name;
  std::string text;
  std::uint64_t hash;
};

/// All that decides on the numbers of a training, or on what ranks exchange; the version first. There are as many,
/// under the same names, whatever the options are. `lowered` is the graph with the options applied.
std::vector<RankFact> rank_facts(const Graph& graph, const step::StepGraph& lowered, const TrainerOptions& options);

}  // namespace halfstep::train
