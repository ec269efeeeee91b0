#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/device.h"
#include "harness/incoherent.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

Device opened() {
  return Device::open(testing::device().info().name, {.tuning = Tuning::off, .may_fork = false});
}

testing::ToyOptions toy(const Device& device, std::uint64_t resident_limit,
                        const std::function<void(TrainerOptions&)>& change) {
  return {.batch = 4, .resident_limit = resident_limit, .dropout = 0.25F, .device = device, .change = change};
}

/// What one process computes that also saves and loads, and what it evaluates.
std::vector<double> alone(const Device& device, std::uint64_t resident_limit) {
  const TemporaryFolder folder;
  Trainer trainer = testing::toy_trainer(testing::toy_set(), toy(device, resident_limit, [](TrainerOptions& options) {
                                           options.accumulate = 2;
                                           options.clip_norm = 0.5F;
                                           options.ema_decay = 0.9F;
                                         }));
  testing::run(trainer, 4);
  trainer.save(folder.path() / "checkpoint");
  testing::run(trainer, 3);
  trainer.load(folder.path() / "checkpoint");
  testing::run(trainer, 3);
  const std::vector<float> weights = testing::toy_weights(trainer);
  std::vector<double> results(weights.begin(), weights.end());
  results.push_back(trainer.take_totals().mean_loss);
  results.push_back(trainer.evaluate(testing::toy_set()).loss);
  results.push_back(static_cast<double>(trainer.report().gradient_norm));
  return results;
}

/// The weights of two ranks one after the other.
std::vector<float> of_ranks(const Device& device, const std::function<void(Ranks&)>& change) {
  const auto weights = testing::results_of_ranks<std::vector<float>>(2, [&](int /*rank*/, const Ranks& ranks) {
    Trainer trainer = testing::toy_trainer(testing::toy_set(), toy(device, 0, [&](TrainerOptions& options) {
                                             options.ranks = ranks;
                                             options.ranks.bucket_bytes = 1;
                                             change(options.ranks);
                                           }));
    testing::run(trainer, 5);
    return testing::toy_weights(trainer);
  });
  std::vector<float> all = weights[0];
  all.insert(all.end(), weights[1].begin(), weights[1].end());
  return all;
}

/// The weights of two ranks whose norms share statistics: few numbers, anywhere in the report.
std::vector<float> of_synchronised_norms(const Device& device) {
  const auto weights = testing::results_of_ranks<std::vector<float>>(2, [&](int rank, const Ranks& ranks) {
    Graph graph;
    const Tensor x = graph.input("x", {4, 5});
    const Tensor first = models::batch_norm(graph.root() / "norm", models::dense(graph.root() / "dense", x, 7));
    const Tensor second =
        models::batch_norm(graph.root() / "last", models::dense(graph.root() / "next", silu(first), 3));
    TrainerOptions options{.loss = mean(silu(second))};
    options.precision = Precision::float32();
    options.ranks = ranks;
    options.ranks.sync_batch_norm = true;
    Trainer trainer = Trainer::compile(device, graph, options);
    std::vector<float> values(20);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((7 * i + 3 * static_cast<std::size_t>(rank)) % 11) / 8;
    for (int step = 0; step < 4; ++step) trainer.step({{"x", std::span<const float>(values)}});
    const std::string names[] = {"dense/weight", "norm/weight", "next/weight", "last/bias"};
    return testing::all_weights(trainer, names);
  });
  std::vector<float> all = weights[0];
  all.insert(all.end(), weights[1].begin(), weights[1].end());
  return all;
}

}  // namespace

TEST_CASE("memory that is not coherent gives the same bits: of a training, its files, an evaluation and ranks") {
  const Device plain = opened();
  const testing::IncoherentVulkan vulkan;
  const Device device = opened();
  for (const std::uint64_t resident_limit : {0U, 1U}) {
    CAPTURE(resident_limit);
    CHECK(alone(device, resident_limit) == alone(plain, resident_limit));
  }
  CHECK(vulkan.flushed() > 0);
  CHECK(vulkan.invalidated() > 0);
  const std::map<std::string, std::function<void(Ranks&)>> kinds{
      {"whole", [](Ranks&) {}},
      {"sharded", [](Ranks& ranks) { ranks.shard_state = true; }},
      {"local steps", [](Ranks& ranks) { ranks.sync_every = 2; }}};
  for (const auto& [name, change] : kinds) {
    CAPTURE(name);
    CHECK(of_ranks(device, change) == of_ranks(plain, change));
  }
  CHECK(of_synchronised_norms(device) == of_synchronised_norms(plain));
}

}  // namespace halfstep
