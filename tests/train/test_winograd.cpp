#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "harness/device.h"
#include "models/resnet_cifar.h"
#include "train/small_training.h"

/// Training by Winograd's algorithm.
namespace halfstep {
namespace {

struct Trained {
  std::string plan;
  std::vector<float> weights;
};

/// ResNet-8 after two steps in f32, with the GEMM kernels of that name.
Trained trained(const std::string& gemm) {
  const Dataset set = testing::toy_dataset(16, {12, 12, 3}, 10);
  const Device device = Device::open({}, {.gemm = gemm});
  Graph graph;
  const Tensor images = graph.input("images", {8, 12, 12, 3});
  const Tensor labels = graph.input("labels", {8}, DType::u32);
  Trainer trainer = Trainer::compile(device, graph,
                                     {.loss = cross_entropy(models::resnet_cifar(graph.root(), images, 8), labels),
                                      .optimizer = Sgd{.rate = 0.05F, .momentum = 0.9F},
                                      .precision = Precision::float32(),
                                      .seed = 3,
                                      .feed = Feed{.samples = images, .labels = labels},
                                      .training_set = &set});
  for (int step = 0; step < 2; ++step) trainer.step();
  trainer.finish();
  const std::string names[] = {"conv1/weight", "layer1/0/conv1/weight", "layer3/0/conv2/weight", "bn1/running_var"};
  return {trainer.inspect().plan(), testing::all_weights(trainer, names)};
}

}  // namespace

TEST_CASE("ResNet-8 trains by Winograd's algorithm to the weights that direct convolutions give") {
  // 16 matrices of 288 tiles of 4 quads.
  if (!testing::device_takes(18'432, 294'912)) return;
  const Trained direct = trained("tile32");
  const Trained winograd = trained("winograd");
  CHECK(direct.plan.find("winograd.") == std::string::npos);
  CHECK(winograd.plan.find("winograd.result") != std::string::npos);
  REQUIRE(direct.weights.size() == winograd.weights.size());
  double largest = 0;
  for (std::size_t i = 0; i < direct.weights.size(); ++i)
    largest = std::max<double>(largest, std::abs(direct.weights[i] - winograd.weights[i]));
  CHECK(largest > 0);
  CHECK(largest < 1e-6);
}

}  // namespace halfstep
