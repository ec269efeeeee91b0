// A network that learns colours from positions, compared with NumPy's: tests/reference/make_hash_grid_parity.py made
// the numbers, and documents how.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "harness/device.h"
#include "models/layers.h"
#include "train/parity.h"

namespace halfstep {
namespace {

using testing::uniform;

constexpr std::int64_t batch = 256;

/// Of the shape that tiny-cuda-nn publishes for images.
struct ImageNetwork {
  Graph graph;
  Tensor positions = graph.input("positions", {batch, 2});
  Tensor colours = graph.input("colours", {batch, 3});
  Tensor loss;

  ImageNetwork() {
    const Scope root = graph.root();
    Tensor x = models::hash_grid(root, positions, {.log2_hashmap_size = 15});
    x = relu(linear(x, root.parameter("w1", {32, 64}, he(32))));
    x = relu(linear(x, root.parameter("w2", {64, 64}, he(64))));
    loss = mse_loss(linear(x, root.parameter("w3", {64, 3}, he(64))), colours);
  }

  Trainer trainer(const Precision& precision) const {
    return Trainer::compile(
        testing::device(), graph,
        {.loss = loss, .optimizer = Adam{.rate = 0.002F, .beta2 = 0.99F, .epsilon = 1e-4F}, .precision = precision});
  }
};

void set_first_values(Trainer& trainer, std::int64_t table) {
  trainer.set_parameter("table", uniform("table", {table}, -1e-4, 1e-4));
  for (const auto& [name, shape] :
       {std::pair{"w1", Shape{32, 64}}, std::pair{"w2", Shape{64, 64}}, std::pair{"w3", Shape{64, 3}}}) {
    const double bound = std::sqrt(6.0 / static_cast<double>(shape[0]));
    trainer.set_parameter(name, uniform(name, shape, -bound, bound));
  }
}

std::vector<float> colours_at(const std::vector<float>& positions) {
  std::vector<float> colours;
  for (std::size_t i = 0; i < positions.size(); i += 2) {
    const double x = static_cast<double>(positions[i]);
    const double y = static_cast<double>(positions[i + 1]);
    for (const double c : {0.5 + 0.5 * std::sin(9 * x + 4 * y), 0.5 + 0.5 * std::sin(31 * x * y), x * (1 - y)}) {
      colours.push_back(static_cast<float>(c));
    }
  }
  return colours;
}

std::vector<float> losses_of(Trainer& trainer, std::size_t steps) {
  std::vector<float> losses;
  for (std::size_t step = 1; step <= steps; ++step) {
    const std::vector<float> positions = uniform(fmt::format("positions{}", step), {batch, 2}, 0, 1);
    const std::vector<float> colours = colours_at(positions);
    trainer.step({{"positions", std::span<const float>(positions)}, {"colours", std::span<const float>(colours)}});
    trainer.finish();
    losses.push_back(trainer.report().loss);
  }
  return losses;
}

}  // namespace

TEST_CASE("a hash grid with two hidden layers learns as NumPy's does, for 50 steps") {
  const testing::Json wanted = testing::read_parity("parity_hash_grid.json");
  const ImageNetwork network;
  const std::int64_t table = hash_grid_size(2, {.log2_hashmap_size = 15});
  REQUIRE(network.graph.parameter_count() == wanted.at("parameters").get<std::int64_t>());
  Trainer trainer = network.trainer(Precision::float32());
  set_first_values(trainer, table);
  const std::vector<float> losses = losses_of(trainer, wanted.at("losses").size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(i);
    const double loss = wanted.at("losses")[i];
    CHECK(std::abs(static_cast<double>(losses[i]) - loss) <= 1e-3 * loss);
  }
  // In mixed precision the table is read in f16, and the positions still are f32.
  Trainer mixed = network.trainer(Precision::mixed());
  set_first_values(mixed, table);
  const double last = wanted.at("losses").back();
  CHECK(static_cast<double>(losses_of(mixed, losses.size()).back()) == doctest::Approx(last).epsilon(0.2));
}

TEST_CASE("a hash grid's weights are the same bits in every run") {
  const ImageNetwork network;
  std::vector<std::vector<float>> tables;
  for (int run = 0; run < 2; ++run) {
    Trainer trainer = network.trainer(Precision::mixed());
    losses_of(trainer, 5);
    tables.push_back(trainer.parameter("table"));
  }
  CHECK(tables[0] == tables[1]);
}

}  // namespace halfstep
