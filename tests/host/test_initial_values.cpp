#include <halfstep/graph.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "graph/ir.h"
#include "harness/bits.h"
#include "state/parameters.h"

namespace halfstep {
namespace {

constexpr std::int64_t count = 1'000'000;

std::vector<float> values_of(const Initializer& initializer, std::uint32_t index = 0, std::uint64_t seed = 1) {
  state::ParameterEntry entry;
  entry.type = {DType::f32, {count}};
  entry.initializer = initializer;
  entry.index = index;
  return state::initial_values(entry, seed);
}

/// The mean of function(values[i], values[i + 1]) over all i.
template <typename Function>
double mean(const std::vector<float>& values, const Function& function) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    sum += function(static_cast<double>(values[i]), static_cast<double>(values[i + 1]));
  }
  return sum / static_cast<double>(values.size() - 1);
}

}  // namespace

TEST_CASE("normal initial values have the moments and tails of the distribution") {
  // A mean of a million is off by 5 of its standard deviations once in two million trials.
  const double bound = 5 / std::sqrt(static_cast<double>(count));
  const std::vector<float> values = values_of(normal(1));
  CHECK(std::abs(mean(values, [](double x, double) { return x; })) < bound);
  CHECK(std::abs(mean(values, [](double x, double) { return x * x; }) - 1) < bound * std::numbers::sqrt2);
  CHECK(std::abs(mean(values, [](double x, double) { return x * x * x; })) < bound * std::sqrt(15.0));
  CHECK(std::abs(mean(values, [](double x, double) { return x * x * x * x; }) - 3) < bound * std::sqrt(96.0));
  CHECK(std::abs(mean(values, [](double x, double next) { return x * next; })) < bound);
  CHECK(std::abs(mean(values, [](double x, double next) { return (x * x - 1) * (next * next - 1); })) < bound * 2);
  for (const double limit : {0.5, 1.0, 2.0, 3.0, 4.0}) {
    CAPTURE(limit);
    const double share = std::erfc(limit / std::numbers::sqrt2) / 2;
    const double deviation = 5 * std::sqrt(share / static_cast<double>(count));
    CHECK(std::abs(mean(values, [&](double x, double) { return x > limit ? 1 : 0; }) - share) < deviation);
    CHECK(std::abs(mean(values, [&](double x, double) { return x < -limit ? 1 : 0; }) - share) < deviation);
  }
  const std::vector<float> moved = values_of(normal(0.25F, 3));
  CHECK(std::ranges::equal(values, moved, [](float x, float y) { return y == 3 + 0.25F * x; }));
}

TEST_CASE("uniform initial values fill their interval") {
  const double bound = 5 / std::sqrt(static_cast<double>(count));
  const std::vector<float> values = values_of(uniform(-1, 3));
  CHECK(std::ranges::min(values) < -0.9999F);
  CHECK(std::ranges::min(values) >= -1);
  CHECK(std::ranges::max(values) > 2.9999F);
  CHECK(std::ranges::max(values) <= 3);
  CHECK(std::abs(mean(values, [](double x, double) { return x; }) - 1) < bound * 4 / std::sqrt(12.0));
  CHECK(std::abs(mean(values, [](double x, double next) { return (x - 1) * (next - 1); })) < bound * 16 / 12);
}

TEST_CASE("initial values differ between parameters and seeds, and have the same bits on every machine") {
  CHECK(values_of(normal(1), 0) != values_of(normal(1), 1));
  CHECK(values_of(normal(1), 0, 1) != values_of(normal(1), 0, 1 + (std::uint64_t{1} << 32)));
  CHECK(testing::hash_of_bits(values_of(normal(0.02F))) == 5131490269087709424U);
  CHECK(testing::hash_of_bits(values_of(uniform(-0.1F, 0.1F))) == 8403564703548118380U);
}

TEST_CASE("a random state has draws of its own, not those of a parameter") {
  Graph graph;
  const auto first_of = [&](const Tensor& tensor) {
    const graph::ValueId id = tensor.id();
    const std::vector<state::Training> alike(1);
    return state::initial_values(state::ParameterLayout(graph.ir(), {&id, 1}, alike).entries().front(), 1);
  };
  CHECK(first_of(graph.root().parameter("w", {8}, normal(1))) != first_of(graph.root().state("s", {8}, normal(1))));
}

}  // namespace halfstep
