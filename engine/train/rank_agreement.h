#pragma once

#include <halfstep/trainer_options.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "step/step_program.h"
#include "train/rank_facts.h"

namespace halfstep::train {

/// Throws Error where options of Ranks cannot be, or others do not go with several ranks.
void check_ranks(const TrainerOptions& options);
/// Throws Error where ranks cannot share out what the optimizers of a graph keep.
void check_shared_state(const step::StepGraph& graph, const TrainerOptions& options);

// All ranks call these together. They block until each has.

/// Throws Error, on every rank, that names the first difference between the ranks' versions, models, options or data.
void check_agreement(const Graph& graph, const step::StepGraph& lowered, const TrainerOptions& options);

/// Throws Error of `where`, on every rank, that names the first of the facts, of which every rank has as many, that is
/// another one on some rank.
void check_same(std::string_view where, Exchange& exchange, std::span<const RankFact> mine);

/// Where a rank first differs from rank 0.
struct Difference {
  int rank;
  std::size_t place;
};
/// Of as many numbers as every rank has, the same on all ranks: the lowest rank that has another one than rank 0, if
/// there is one, and the first such number.
std::optional<Difference> first_difference(Exchange& exchange, std::span<const std::uint64_t> mine);

/// A hash of 64 bits like that of Fowler, Noll and Vo (FNV-1a), but of words of 8 bytes: sets and weights are large.
std::uint64_t hash_of(std::span<const std::byte> bytes);
/// How a sum of a step travels. Its noise is that of no other one: `sum` tells it from those of the same step.
WireFormat wire_format(const Ranks& ranks, std::uint64_t seed, std::uint64_t step, std::uint64_t sum);
/// Gives every rank the text of `root`.
std::string broadcast_text(Exchange& exchange, std::string text, int root);

}  // namespace halfstep::train
