// Gradients with scales of their own, kernel by kernel: whatever stores a gradient scales it.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/device.h"
#include "harness/values.h"
#include "models/layers.h"
#include "train/scaled_gradients.h"

namespace halfstep {

using testing::scaled;
using testing::unscaled;

namespace {

/// Whether gradients are the same numbers, rounded to f16 once, to what is maybe a subnormal in one of them.
bool equal_but_for_rounding(const std::vector<float>& got, const std::vector<float>& want) {
  bool equal = got.size() == want.size();
  for (std::size_t i = 0; equal && i < got.size(); ++i) {
    const double apart = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    equal = apart <= 0x1p-11 * std::abs(static_cast<double>(got[i])) + 0x1p-25;
  }
  return equal;
}

/// A training at rate 0 of some steps of the loss sum(layer(x) pull), with all gradients traced.
Trainer trained(const Shape& input, const Shape& output, const std::function<Tensor(const Scope&, Tensor)>& layer,
                const Precision& precision) {
  Graph graph;
  const Tensor y = layer(graph.root() / "layer", graph.input("x", input));
  TrainerOptions options{.loss = sum(mul(y, graph.input("pull", output)))};
  options.optimizer = Sgd{.rate = 0};
  options.precision = precision;
  options.trace = "*gradient";
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  const auto small = testing::uniform(input, 5, -0x1p-6, 0x1p-6).values;
  const auto pulls = testing::uniform(output, 6, 0.5, 1).values;
  const std::vector<float> xs(small.begin(), small.end());
  const std::vector<float> ps(pulls.begin(), pulls.end());
  for (int i = 0; i < 5; ++i) {
    trainer.step({{"x", std::span<const float>(xs)}, {"pull", std::span<const float>(ps)}});
  }
  trainer.finish();
  CHECK(trainer.report().applied == 5);
  return trainer;
}

/// Whether a plan has a dispatch of gemm_reduce that writes `tensor`.
bool reduces(const std::string& plan, const std::string& tensor) {
  for (std::size_t at = plan.find("[gemm_reduce"); at != std::string::npos; at = plan.find("[gemm_reduce", at + 1)) {
    const std::string operands = plan.substr(at, plan.find('[', at + 1) - at);
    if (operands.find("> " + tensor) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a bias's gradient is scaled by its own scale where a product of many rows is added up from parts") {
  struct Case {
    std::string name;
    Shape input;
    Shape output;
    std::function<Tensor(const Scope&, Tensor)> layer;
  };
  const std::vector<Case> cases{
      {"convolution",
       {8, 24, 24, 3},
       {8, 24, 24, 6},
       [](const Scope& scope, Tensor x) { return models::same_conv(scope, x, 6, 3); }},
      {"linear", {300, 5}, {300, 7}, [](const Scope& scope, Tensor x) { return models::dense(scope, x, 7); }},
  };
  std::size_t added_up = 0;
  for (const Case& one : cases) {
    CAPTURE(one.name);
    Trainer got = trained(one.input, one.output, one.layer, scaled(Precision::float16()));
    Trainer want = trained(one.input, one.output, one.layer, unscaled(Precision::float16()));
    if (reduces(got.inspect().plan(), "layer/bias.gradient")) ++added_up;
    for (const char* name : {"layer/weight.gradient", "layer/bias.gradient"}) {
      CAPTURE(name);
      const std::vector<float> gradient = got.inspect().trace(name);
      CHECK(std::ranges::all_of(gradient, [](float v) { return v != 0; }));
      CHECK(equal_but_for_rounding(gradient, want.inspect().trace(name)));
    }
  }
  CHECK(added_up > 0);
}

TEST_CASE("parameters whose gradients are the same value are updated by it, each with a scale of its own") {
  Graph graph;
  const Tensor x = graph.input("x", {8, 5});
  const Tensor pull = graph.input("pull", {8, 7});
  Tensor w = graph.root().parameter("0", {5, 7}, constant(0));
  for (const char* name : {"1", "2"}) w = add(w, graph.root().parameter(name, {5, 7}, constant(0)));
  Trainer trainer =
      Trainer::compile(testing::device(), graph,
                       {.loss = sum(mul(matmul(x, w), pull)), .optimizer = Sgd{.rate = 0.5F}, .precision = scaled()});
  const std::vector<float> xs(40, 0x1p-9F);
  const std::vector<float> pulls(56, 0x1p-8F);
  for (int i = 1; i <= 6; ++i) {
    trainer.step({{"x", std::span<const float>(xs)}, {"pull", std::span<const float>(pulls)}});
    CAPTURE(i);
    for (const char* name : {"0", "1", "2"}) {
      CAPTURE(name);
      CHECK(trainer.parameter(name) == std::vector<float>(35, -0.5F * 8 * 0x1p-17F * static_cast<float>(i)));
    }
  }
}

TEST_CASE("every kernel that stores a parameter's gradient scales it: products, sums, norms, and what is shared") {
  const auto gradients = [](const Precision& precision) {
    Graph graph;
    const Tensor x = graph.input("x", {2, 6, 5, 3});
    const Tensor pull = graph.input("pull", {2, 7});
    const Tensor bumps = graph.root().parameter("bumps", {2, 7}, constant(0.5F));
    const Tensor table = graph.root().parameter("table", {7, 2}, constant(0.25F));
    const Tensor shared = (graph.root() / "shared").parameter("w", {7}, constant(0.125F));
    Tensor h = models::same_conv(graph.root() / "conv", x, 6, 3);
    h = models::batch_norm(graph.root() / "norm", h);
    h = conv2d(h, graph.root().parameter("grouped", {3, 3, 2, 6}, constant(0.125F)), {.padding = {1, 1}, .groups = 3});
    h = models::dense(graph.root() / "dense", flatten(h), 7);
    h = mul(bias(bias(add(h, bumps), shared), shared), reshape(table, {2, 7}));
    TrainerOptions options{.loss = sum(mul(h, pull))};
    options.optimizer = Sgd{.rate = 0};
    options.precision = precision;
    options.trace = "*gradient";
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    const auto pixels = testing::uniform({2, 6, 5, 3}, 5, -1, 1).values;
    const auto pulls = testing::uniform({2, 7}, 6, 0.5, 1).values;
    const std::vector<float> xs(pixels.begin(), pixels.end());
    const std::vector<float> ps(pulls.begin(), pulls.end());
    for (int i = 0; i < 5; ++i) {
      trainer.step({{"x", std::span<const float>(xs)}, {"pull", std::span<const float>(ps)}});
    }
    std::map<std::string, std::vector<float>> result;
    for (const char* name : {"conv/weight", "conv/bias", "norm/weight", "norm/bias", "grouped", "dense/weight",
                             "dense/bias", "shared/w", "bumps", "table"}) {
      result[name] = trainer.inspect().trace(fmt::format("{}.gradient", name));
    }
    CHECK(trainer.report().tensor_updates_skipped == 0);
    CHECK(trainer.report().applied == 5);
    return result;
  };
  // The dense layer's gradients are made in f32, and cast where they are stored.
  Precision precision = Precision::float16();
  precision.layer("dense", DType::f32);
  const auto want = gradients(unscaled(precision));
  for (const auto& entry : gradients(scaled(precision))) {
    const std::string& name = entry.first;
    const std::vector<float>& got = entry.second;
    CAPTURE(name);
    CHECK(std::ranges::any_of(got, [](float v) { return v != 0; }));
    CHECK(equal_but_for_rounding(got, want.at(name)));
  }
}

TEST_CASE("the gradient of queries that share keys is scaled, though the last of its operators moves bits") {
  const auto gradient = [](const Precision& precision) {
    Graph graph;
    const Tensor x = graph.input("x", {2, 2, 6, 8});
    const Tensor queries = graph.root().parameter("queries", {2, 4, 6, 8}, normal(1));
    const Tensor y = attention(queries, x, x);
    TrainerOptions options{.loss = mean(mul(y, y))};
    options.optimizer = Sgd{.rate = 0};
    options.precision = precision;
    options.trace = "*gradient";
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    const auto numbers = testing::uniform({2, 2, 6, 8}, 5).values;
    const std::vector<float> values(numbers.begin(), numbers.end());
    for (int i = 0; i < 5; ++i) trainer.step({{"x", std::span<const float>(values)}});
    CHECK(trainer.report().applied == 5);
    return trainer.inspect().trace("queries.gradient");
  };
  const std::vector<float> got = gradient(scaled());
  CHECK(std::ranges::any_of(got, [](float v) { return v != 0; }));
  CHECK(equal_but_for_rounding(got, gradient(unscaled())));
}

}  // namespace halfstep
