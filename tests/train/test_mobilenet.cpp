#include <doctest/doctest.h>

#include <cmath>

#include "harness/device.h"
#include "models/mobilenet_v2.h"
#include "train/small_training.h"

namespace halfstep {

TEST_CASE("a narrow MobileNetV2 learns a batch") {
  constexpr std::int64_t batch = 8;
  const Dataset set = testing::toy_dataset(batch, {16, 16, 3}, 3);
  Graph graph;
  const Tensor images = graph.input("images", {batch, 16, 16, 3});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits =
      models::mobilenet_v2(graph.root(), images, set.classes, {.width = 0.1, .stem = models::Stem::small});
  Trainer trainer =
      Trainer::compile(testing::device(), graph,
                       {.loss = cross_entropy(logits, labels),
                        .optimizer = Adam{.rate = 0.003F},
                        .feed = Feed{.samples = images, .labels = labels, .mean = {0.3F}, .stddev = {0.2F}},
                        .training_set = &set});
  const auto mean_loss = [&] {
    for (int i = 0; i < 4; ++i) trainer.step();
    return trainer.take_totals().mean_loss;
  };
  const double first = mean_loss();
  mean_loss();
  CHECK(first < 2 * std::log(3.0));
  CHECK(mean_loss() < 0.7 * first);
}

}  // namespace halfstep
