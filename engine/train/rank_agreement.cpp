#include "train/rank_agreement.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <vector>

#include "train/balancer.h"
#include "train/local_steps.h"

namespace halfstep::train {

void check_ranks(const TrainerOptions& options) {
  const Ranks& ranks = options.ranks;
  if (!is_floating(ranks.wire)) {
    fail("trainer", fmt::format("expected gradients to travel in a floating type, got {}", name(ranks.wire)));
  }
  if (ranks.compare_every < 0 || ranks.bucket_bytes < 1) {
    fail("trainer", fmt::format("expected compare_every from 0 on and bucket_bytes from 1 on, got {} and {}",
                                ranks.compare_every, ranks.bucket_bytes));
  }
  check_local_steps(options);
  check_balance(options);
  const bool divided = ranks.balance.measured || !ranks.balance.shares.empty();
  if (ranks.sync_batch_norm && (divided || ranks.sync_every > 0)) {
    fail("trainer",
         fmt::format("expected equal parts of ranks that exchange every step with Ranks::sync_batch_norm, got {}",
                     divided ? "a Balance" : "sync_every"),
         "each micro-batch of a rank is normalised with one of every other rank");
  }
  if (divided && ranks.sync_every > 0) fail("trainer", "expected equal parts of ranks with sync_every, got a Balance");
  if (ranks.size() == 1) return;
  const auto refuse = [](const char* what, const char* why) {
    fail("trainer", fmt::format("expected one rank with {}, got several", what), why);
  };
  if (options.precision.stop_on.any()) refuse("Precision::stop_on", "a rank sees its own tensors only");
  if (options.snapshot_every > 0) {
    refuse("snapshots", "a rank that loses its device ends all; go on from a checkpoint");
  }
}

void check_shared_state(const step::StepGraph& graph, const TrainerOptions& options) {
  if (!options.ranks.share_state()) return;
  const auto refuse = [](const std::string& what, const char* why) {
    fail("trainer", fmt::format("expected shard_state without {}, got both", what), why);
  };
  if (options.ema_decay > 0) refuse("ema_decay", "averages need every rank's masters");
  for (const state::Training& training : graph.training) {
    const Optimizer& optimizer = graph.optimizers[training.optimizer];
    if (training.frozen || !optimizer->in_operators()) continue;
    refuse(optimizer->name(), "its operators take whole tensors, of which a rank has a part");
  }
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 14695981039346656037ULL ^ bytes.size();
  const auto add = [&](std::uint64_t word) {
    hash = (hash ^ word) * 1099511628211ULL;
    hash ^= hash >> 32;  // a product moves differences of words to higher bits only
  };
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    add(word);
  }
  for (const std::byte byte : bytes) add(static_cast<std::uint64_t>(byte));
  return hash;
}

WireFormat wire_format(const Ranks& ranks, std::uint64_t seed, std::uint64_t step, std::uint64_t sum) {
  const std::array<std::uint64_t, 3> key{seed, step, sum};
  return {ranks.wire, ranks.rounding, hash_of(std::as_bytes(std::span(key)))};
}

std::string broadcast_text(Exchange& exchange, std::string text, int root) {
  std::uint64_t size = text.size();
  exchange.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  text.resize(size);
  exchange.broadcast(std::as_writable_bytes(std::span(text)), root);
  return text;
}

void check_same(std::string_view where, Exchange& exchange, std::span<const RankFact> mine) {
  std::vector<std::uint64_t> hashes;
  for (const RankFact& known : mine) hashes.push_back(known.hash);
  const std::optional<Difference> found = first_difference(exchange, hashes);
  if (!found) return;
  const RankFact& different = mine[found->place];
  const std::string wanted = broadcast_text(exchange, different.text, 0);
  const std::string got = broadcast_text(exchange, different.text, found->rank);
  fail(where, fmt::format("expected one {} on all ranks, got {} on rank 0 and {} on rank {}", different.name, wanted,
                          got, found->rank));
}

std::optional<Difference> first_difference(Exchange& exchange, std::span<const std::uint64_t> mine) {
  std::vector<std::uint64_t> theirs(mine.begin(), mine.end());
  exchange.broadcast(std::as_writable_bytes(std::span(theirs)), 0);
  // For each rank, 1 more than the place of the first number that differs, or 0.
  std::vector<float> found(static_cast<std::size_t>(exchange.size()), 0.0F);
  for (std::size_t i = mine.size(); i-- > 0;) {
    if (mine[i] != theirs[i]) found[static_cast<std::size_t>(exchange.rank())] = static_cast<float>(i + 1);
  }
  exchange.begin_sum(found, {});
  exchange.wait();
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    if (found[rank] > 0) return Difference{static_cast<int>(rank), static_cast<std::size_t>(found[rank]) - 1};
  }
  return std::nullopt;
}

void check_agreement(const Graph& graph, const step::StepGraph& lowered, const TrainerOptions& options) {
  const std::vector<RankFact> mine = rank_facts(graph, lowered, options);
  check_same("exchange", *options.ranks.exchange, std::span(mine).first(1));  // another version may have other facts
  check_same("exchange", *options.ranks.exchange, std::span(mine).subspan(1));
}

}  // namespace halfstep::train
