#pragma once

#include <halfstep/trainer_options.h>

#include <cstdint>
#include <span>
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

/// A set to evaluate: its count, what a graph is fed with and the bucket of each sample, but not what it is called, as
/// ranks may have it in different places. Reads all of what is fed.
RankFact set_fact(const Dataset& set, const std::vector<Field>& fed, std::span<const std::uint32_t> buckets);

}  // namespace halfstep::train
