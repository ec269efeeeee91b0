// A training whose parameters together have more than 4 GiB.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/device.h"
#include "state/parameters.h"

namespace halfstep {
namespace {

constexpr std::int64_t rows = 180'000;
constexpr std::int64_t columns = 512;
constexpr std::int64_t samples = 4;
constexpr std::uint64_t seed = 9;

/// One step of some of a dozen layers of 369 MB each that do not depend on each other: tables and dense layers in turn.
struct Layers {
  Layers(int first, int end, float start_within) {
    Graph graph;
    const Tensor x = graph.input("x", {samples, columns});
    const Tensor ids = graph.input("ids", {samples}, DType::u32);
    Tensor loss;
    for (int i = first; i < end; ++i) {
      const Scope scope = graph.root() / fmt::format("layer{}", i);
      const Shape shape = shape_of(i);
      const Tensor weight = scope.parameter("weight", shape, uniform(-start_within, start_within));
      const Tensor of = i % 2 == 0 ? sum(mul(embedding(weight, ids), scale(x, static_cast<float>(i + 1))))
                                   : cross_entropy(linear(scale(x, static_cast<float>(i + 1)), weight), ids);
      loss = i == first ? of : add(loss, of);
    }
    trainer.emplace(Trainer::compile(
        testing::device(), graph,
        {.loss = loss, .optimizer = Sgd{.rate = 0.5F}, .precision = Precision::float32(), .seed = seed}));
  }

  static Shape shape_of(int layer) { return layer % 2 == 0 ? Shape{rows, columns} : Shape{columns, rows}; }
  static std::string name(int layer) { return fmt::format("layer{}/weight", layer); }

  void step() {
    std::vector<float> x;
    for (std::int64_t i = 0; i < samples * columns; ++i) x.push_back(static_cast<float>((i * i) % 17 - 8) / 8);
    const std::vector<std::uint32_t> ids{7, rows - 1, 90'001, 7};
    trainer->step({{"x", std::span<const float>(x)}, {"ids", std::span<const std::uint32_t>(ids)}});
    trainer->finish();
  }

  std::optional<Trainer> trainer{};
};

}  // namespace

TEST_CASE("a dozen layers of 4.4 GB together train as each does alone") {
  if (!testing::every_variant() || testing::context().heap_bytes().free < std::uint64_t{12} << 30) return;
  constexpr int count = 12;
  constexpr float start_within = 0.1F;
  Layers all(0, count, start_within);
  CHECK(all.trainer->inspect().summary().weight_bytes > std::uint64_t{1} << 32);
  const auto start_of = [&](int layer) {
    state::ParameterEntry entry;
    entry.type = {DType::f32, Layers::shape_of(layer)};
    entry.initializer = uniform(-start_within, start_within);
    entry.index = static_cast<std::uint32_t>(layer);
    return state::initial_values(entry, seed);
  };
  for (int i = 0; i < count; ++i) CHECK((all.trainer->parameter(Layers::name(i)) == start_of(i)));
  all.step();
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    Layers alone(i, i + 1, 0);
    const std::vector<float> start = start_of(i);
    alone.trainer->set_parameter(Layers::name(i), start);
    alone.step();
    const std::vector<float> wanted = alone.trainer->parameter(Layers::name(i));
    CHECK((wanted != start));
    CHECK((all.trainer->parameter(Layers::name(i)) == wanted));
  }
}

}  // namespace halfstep
