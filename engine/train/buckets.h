#pragma once

#include <halfstep/trainer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "step/step_program.h"

namespace halfstep::train {

/// A graph that is trained, with the options that hold for it: the trainer's own, or a shorter one.
struct BucketGraph {
  const Graph* graph = nullptr;
  TrainerOptions options;
  std::int64_t length = 0;  ///< of what is read of longer fields; 0: without buckets
};

/// The graphs that a trainer trains, the shortest first and its own last; one if there are no buckets. Throws Error
/// where Buckets are not what they should be.
std::vector<BucketGraph> bucket_graphs(const Graph& graph, const TrainerOptions& options);

/// Throws Error unless a shorter graph can be trained on the store and the set of the trainer's own: it has the same
/// parameters, states and fields, and the same batch.
void check_bucket(const step::StepGraph& shorter, const step::StepGraph& own, std::int64_t length);

/// How long samples are, and the lengths of the buckets that they belong to.
struct Lengths {
  std::string field;                    ///< of every set
  std::vector<std::int64_t> lengths{};  ///< of the buckets, increasing; empty: there are none
};
Lengths lengths_of(const TrainerOptions& options);

/// The bucket of each sample of a set, the shortest that it fits into; empty if there are none. Throws Error that
/// names the set if it has no lengths, or one beyond the longest.
std::vector<std::uint32_t> buckets_of(const Dataset& set, const Lengths& lengths);

}  // namespace halfstep::train
