// What ranks that make steps by themselves make of their weights and states when they synchronise.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "harness/device.h"
#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {

using testing::results_of_ranks;

TEST_CASE("an outer step is Nesterov's, along the mean of what ranks have changed") {
  const std::vector<std::vector<float>> weights =
      results_of_ranks<std::vector<float>>(2, [](int rank, const Ranks& ranks) {
        testing::Pull pull(5, 1, Sgd{.rate = 0.125F}, Precision::float32(), 5, [&](TrainerOptions& options) {
          options.ranks = ranks;
          options.ranks.sync_every = 3;
          options.ranks.outer_rate = 0.5F;
          options.ranks.outer_momentum = 0.75F;
        });
        pull.run(rank == 0 ? 1.0F : 3.0F, 9);
        return pull.weights();
      });
  double w = 1;
  double momentum = 0;
  for (int sync = 0; sync < 3; ++sync) {
    const double moved = 3 * 0.125 * 2;
    momentum = 0.75 * momentum + moved;
    w -= 0.5 * (0.75 * momentum + moved);
  }
  for (const std::vector<float>& of_rank : weights) {
    for (const float weight : of_rank) CHECK(static_cast<double>(weight) == doctest::Approx(w).epsilon(1e-6));
  }
}

TEST_CASE("an outer step keeps to the limit of weights") {
  const std::vector<std::vector<float>> weights = results_of_ranks<std::vector<float>>(2, [](int, const Ranks& ranks) {
    testing::Pull pull(5, 0.25F, Sgd{.rate = 0.125F}, Precision::float32(), 5, [&](TrainerOptions& options) {
      options.ranks = ranks;
      options.ranks.sync_every = 1;
      options.ranks.outer_rate = 1;
      options.ranks.outer_momentum = 0.5F;
      options.weight_limit = 0.25F;
    });
    pull.run(1, 3);
    return pull.weights();
  });
  // By its momentum alone: 0.25, 0.0625, -0.21875, -0.484375.
  CHECK(weights == std::vector<std::vector<float>>(2, std::vector<float>(5, -0.25F)));
}

TEST_CASE("weights that ranks push beyond f16 are its largest number where that is asked for") {
  const std::vector<std::vector<float>> weights = results_of_ranks<std::vector<float>>(2, [](int, const Ranks& ranks) {
    Precision precision = testing::plain(Precision::float16());
    precision.overflow = Overflow::saturate;
    testing::Pull pull(5, 65472, Sgd{.rate = 32}, precision, 5, [&](TrainerOptions& options) {
      options.ranks = ranks;
      options.ranks.sync_every = 1;
      options.ranks.outer_rate = 1;
      options.ranks.outer_momentum = 0.875F;
    });
    pull.run(-1, 4);
    return pull.weights();
  });
  CHECK(weights == std::vector<std::vector<float>>(2, std::vector<float>(5, 65504)));
}

TEST_CASE("states that no rank has changed stay as they are, and others become the means") {
  using States = std::vector<std::vector<float>>;
  States before;
  const std::vector<States> after = results_of_ranks<States>(3, [&](int rank, const Ranks& ranks) {
    Graph graph;
    const Tensor w = graph.root().parameter("w", {3}, constant(1));
    const Tensor x = graph.input("x", {3});
    graph.root().state("still", {70}, uniform(1, 2));  // of many of them, three divided by three are another
    const Tensor moving = graph.root().state("moving", {3}, constant(8));
    update(moving, add(moving, x));
    Ranks apart = ranks;
    apart.sync_every = 2;
    Trainer trainer = Trainer::compile(
        testing::device(), graph,
        {.loss = sum(mul(w, x)), .optimizer = Sgd{.rate = 0.5F}, .ranks = apart, .precision = Precision::float32()});
    if (rank == 0) before = {trainer.parameter("still"), std::vector<float>(3, 8 + 2 * 2)};
    const std::vector<float> values(3, 1 + static_cast<float>(rank));
    for (int i = 0; i < 2; ++i) trainer.step({{"x", values}});
    return States{trainer.parameter("still"), trainer.parameter("moving")};
  });
  for (const States& states : after) CHECK(states == before);
}

}  // namespace halfstep
