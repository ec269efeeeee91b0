// What the rounding of gradients that travel between ranks is keyed on.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

/// Notes the noise of sums that are rounded.
class Noting final : public testing::PassingExchange {
 public:
  using PassingExchange::PassingExchange;
  void begin_sum(std::span<float> values, const WireFormat& format) override {
    if (format.type != DType::f32) noises.push_back(format.noise);
    PassingExchange::begin_sum(values, format);
  }

  std::vector<std::uint64_t> noises;
};

}  // namespace

TEST_CASE("no two sums that are rounded for the wire have one noise, and after load() they have what they had") {
  const std::function<void(Ranks&)> ways[] = {[](Ranks&) {}, [](Ranks& ranks) { ranks.shard_state = true; },
                                              [](Ranks& ranks) { ranks.sync_every = 1; }};
  for (const auto& change : ways) {
    testing::on_ranks(2, [&](int rank, const Ranks& as) {
      const auto noting = std::make_shared<Noting>(as.exchange);
      Trainer trainer = testing::toy_trainer(testing::toy_set(), {.batch = 4, .change = [&](TrainerOptions& options) {
                                                                    options.ranks = Ranks(noting);
                                                                    options.ranks.wire = DType::f16;
                                                                    options.ranks.rounding = Rounding::stochastic;
                                                                    options.ranks.bucket_bytes = 1;
                                                                    change(options.ranks);
                                                                  }});
      testing::run(trainer, 1);
      const Checkpoint start = trainer.checkpoint();
      testing::run(trainer, 2);
      const std::vector<std::uint64_t> noises = noting->noises;
      const std::size_t before = noises.size() / 3;
      trainer.load(start);
      noting->noises.resize(before);
      testing::run(trainer, 2);
      if (rank > 0) return;
      CHECK(before > 1);
      CHECK(std::set(noises.begin(), noises.end()).size() == noises.size());
      CHECK(noting->noises == noises);
    });
  }
}

}  // namespace halfstep
