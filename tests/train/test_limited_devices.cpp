#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "models/layers.h"
#include "train/small_training.h"

/// Training on a device that is told to have less than it has: the same numbers, or an Error from compile.
namespace halfstep {
namespace {

const Dataset& training_set() {
  static const Dataset set = testing::toy_dataset(40, {12, 12, 1}, 3);
  return set;
}

/// What four steps on a device with these limits leave of the weights. No tensor takes more than 147,456 bytes, and all
/// parameters together do; the products by which kernels of a GPU are tried take 74,480.
std::vector<float> trained(const std::string& limits, const Precision& precision) {
  const Device device = Device::open({}, {.limits = limits});
  Graph graph;
  const Tensor images = graph.input("images", {8, 12, 12, 1});
  const Tensor labels = graph.input("labels", {8}, DType::u32);
  const Tensor hidden = max_pool2d(relu(models::batch_norm(
      graph.root() / "norm", models::same_conv(graph.root() / "conv", images, 32, 3, models::Bias::none))));
  const Tensor wide = gelu(models::dense(graph.root() / "wide", flatten(hidden), 32));
  const Tensor wider = gelu(models::dense(graph.root() / "wider", wide, 256));
  const Tensor logits = models::dense(graph.root() / "dense", layer_norm(wider), 3);
  Trainer trainer = Trainer::compile(device, graph,
                                     {.loss = cross_entropy(logits, labels),
                                      // With Adam's usual epsilon the first steps are as large as the rate,
                                      // whatever the gradient, so that the rounding of small ones shows.
                                      .optimizer = Adam{.rate = 0.01F, .epsilon = 0.01F},
                                      .clip_norm = 1,
                                      .accumulate = 2,
                                      .ema_decay = 0.9F,
                                      .precision = precision,
                                      .seed = 3,
                                      .feed = Feed{.samples = images, .labels = labels},
                                      .training_set = &training_set()});
  for (int step = 0; step < 4; ++step) trainer.step();
  trainer.finish();
  const std::string names[] = {"conv/weight",  "norm/weight",  "norm/running_var", "wide/weight",
                               "wider/weight", "dense/weight", "dense/bias"};
  return testing::all_weights(trainer, names);
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max<double>(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("a device told to have less trains to the same weights") {
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    const std::vector<float> own = trained("", precision);
    for (const char* const limits : {"storage_range=147456", "buffer_bytes=262144", "groups=64",
                                     "invocations=128,shared_memory=16384,push_bytes=128,subgroup_size=0",
                                     "texels=64,groups=64,storage_range=147456,subgroup_size=0"}) {
      CAPTURE(std::string(limits));
      CHECK(largest_difference(trained(limits, precision), own) < 1e-4);
    }
  }
}

TEST_CASE("a device told to have too little is an error from compile that names what exceeds the limit") {
  CHECK_THROWS_WITH_AS(trained("storage_range=4096,storage_buffers=8", Precision::float32()),
                       doctest::Contains("expected at most 8 storage buffers, the device's limit, got "), Error);
  CHECK_THROWS_WITH_AS(Device::open({}, {.limits = "invocations=1000000"}),
                       doctest::Contains("[device] expected the limit invocations to be at most"), Error);
}

}  // namespace halfstep
