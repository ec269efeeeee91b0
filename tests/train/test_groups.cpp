#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

/// A matrix "m/weight", a vector "m/bias" and a vector "head/bias", all of ones, with a gradient of `pull` each.
Trainer pulled(TrainerOptions options) {
  Graph graph;
  const Tensor pull = graph.input("pull", {1});
  const Scope m = graph.root() / "m";
  const Tensor weight = m.parameter("weight", {2, 3}, constant(1));
  const Tensor bias = m.parameter("bias", {5}, constant(1));
  const Tensor head = (graph.root() / "head").parameter("bias", {7}, constant(1));
  options.loss = add(add(sum(mul(weight, pull)), sum(mul(bias, pull))), sum(mul(head, pull)));
  return Trainer::compile(testing::device(), graph, options);
}

TrainerOptions plain(Precision precision = Precision::float32()) {
  TrainerOptions options;  // pulled() sets the loss
  options.precision = precision;
  options.optimizer = Sgd{.rate = 0.25F};
  return options;
}

void step(Trainer& trainer, float pull) {
  trainer.step({{"pull", std::span<const float>(&pull, 1)}});
  trainer.finish();
}

}  // namespace

TEST_CASE("groups have rates and decays of their own, and the first that matches counts") {
  TrainerOptions options = plain();
  options.optimizer = Sgd{.rate = 0.25F, .weight_decay = 0.5F};
  options.groups = {{.pattern = "head/*", .rate = 2}, {.pattern = "*bias", .weight_decay = 0.0F}};
  Trainer trainer = pulled(options);
  step(trainer, 1);
  CHECK(trainer.parameter("m/weight")[5] == 1 - 0.25F * 1.5F);
  CHECK(trainer.parameter("m/bias")[4] == 1 - 0.25F);
  CHECK(trainer.parameter("head/bias")[6] == 1 - 0.5F * 1.5F);
}

TEST_CASE("weight decay leaves norms and biases alone where it is told to") {
  for (const Optimizer& optimizer :
       {Optimizer{Sgd{.rate = 0.25F, .weight_decay = 0.5F}}, Optimizer{AdamW{.rate = 0.25F, .weight_decay = 0.5F}}}) {
    TrainerOptions options = plain();
    options.optimizer = optimizer;
    options.decay_vectors = false;
    Trainer trainer = pulled(options);
    step(trainer, 0);
    CHECK(trainer.parameter("m/weight")[0] == 1 - 0.125F);
    CHECK(trainer.parameter("m/bias")[0] == 1);
  }
}

TEST_CASE("frozen parameters stay, and take neither gradients nor moments") {
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    TrainerOptions options = plain(precision);
    options.optimizer = Adam{.rate = 0.25F};
    if (precision.name == "mixed") options.precision.loss_scale = LossScale::fixed(64);
    Trainer whole = pulled(options);
    options.groups = {{.pattern = "m/*", .frozen = true}};
    Trainer trainer = pulled(options);
    CHECK(trainer.inspect().summary().parameters == 7);
    CHECK(trainer.inspect().summary().gradient_bytes * 3 == whole.inspect().summary().gradient_bytes);
    CHECK(trainer.inspect().summary().optimizer_bytes * 3 == whole.inspect().summary().optimizer_bytes);
    // Six bytes for a weight with a master, two for a frozen one's copy; without masters there is no difference.
    const std::uint64_t parts = precision.name == "mixed" ? 6 + 2 + 2 : 18;
    CHECK(trainer.inspect().summary().weight_bytes * 18 == whole.inspect().summary().weight_bytes * parts);
    step(trainer, 1);
    CHECK(trainer.parameter("m/weight") == std::vector<float>(6, 1));
    CHECK(trainer.parameter("head/bias")[0] != 1);
    const TemporaryFolder folder;
    trainer.save(folder.path() / "checkpoint");
    step(trainer, 1);
    const std::vector<float> wanted = trainer.parameter("head/bias");
    Trainer resumed = pulled(options);
    resumed.load(folder.path() / "checkpoint");
    step(resumed, 1);
    CHECK(resumed.parameter("head/bias") == wanted);
  }
}

TEST_CASE("a frozen parameter is kept in the type that it is read in") {
  constexpr float fine = 1 + 0x1p-13F;  // 1 in f16
  Graph graph;
  const Scope root = graph.root();
  const Tensor x = graph.input("x", {2, 3, 3, 5});
  const Tensor y = group_norm(linear(x, (root / "fc").parameter("weight", {5, 6}, constant(fine))), 2,
                              (root / "norm").parameter("weight", {6}, constant(fine)),
                              (root / "norm").parameter("bias", {6}, constant(0)));
  const Tensor head = (root / "head").parameter("weight", {6}, constant(fine));
  TrainerOptions options = plain(Precision::mixed());
  options.loss = sum(mul(y, head));
  options.groups = {{.pattern = "fc/*", .frozen = true}, {.pattern = "norm/*", .frozen = true}};
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  CHECK(trainer.parameter("fc/weight")[0] == 1);
  CHECK(trainer.parameter("norm/weight")[0] == fine);
  CHECK(trainer.parameter("head/weight")[0] == fine);
}

TEST_CASE("attention whose mask is frozen keeps its dropout") {
  const auto losses = [](float dropout) {
    Graph graph;
    const Tensor x = graph.input("x", {1, 2, 16, 8});
    const Tensor w = graph.root().parameter("w", {8}, constant(1));
    const Tensor mask = graph.root().parameter("mask", {2, 16, 16}, constant(0));
    const Tensor values = mul(x, w);
    TrainerOptions options = plain();
    options.loss = sum(attention(values, values, values, {.mask = mask, .dropout = dropout}));
    options.optimizer = Sgd{.rate = 0};
    options.groups = {{.pattern = "mask", .frozen = true}};
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    const std::vector<float> ones(256, 1);
    std::vector<float> result;
    for (int i = 0; i < 3; ++i) {
      trainer.step({{"x", std::span<const float>(ones)}});
      trainer.finish();
      result.push_back(trainer.report().loss);
    }
    return result;
  };
  const std::vector<float> whole = losses(0);
  const std::vector<float> dropped = losses(0.5F);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(std::abs(dropped[i] - whole[i]) > 1);
  CHECK(dropped[0] != dropped[1]);
}

TEST_CASE("a frozen network of dense layers passes gradients on") {
  for (const std::int64_t width : {64, 20}) {  // what one kernel computes, and what layers do
    CAPTURE(width);
    Graph graph;
    const Tensor x = graph.input("x", {32, 16});
    const Tensor w = graph.root().parameter("w", {16}, constant(1));
    std::vector<DenseLayer> layers;
    const Scope decoder = graph.root() / "decoder";
    layers.push_back({.weight = decoder.parameter("0", {16, width}, constant(0.25F))});
    layers.push_back({.weight = decoder.parameter("1", {width, width}, constant(0.25F))});
    layers.push_back({.weight = decoder.parameter("2", {width, 4}, constant(0.25F))});
    TrainerOptions options = plain();
    options.loss = mean(fused_mlp(mul(x, w), layers));
    options.groups = {{.pattern = "decoder/*", .frozen = true}};
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    const std::vector<float> ones(512, 1);
    trainer.step({{"x", std::span<const float>(ones)}});
    // Each of the 16 numbers reaches the outputs by width^2 ways.
    const float gradient = 0.25F * 0.25F * 0.25F * static_cast<float>(width * width);
    for (const float weight : trainer.parameter("w")) CHECK(weight == doctest::Approx(1 - 0.25F * gradient));
    CHECK(trainer.parameter("decoder/1")[0] == 0.25F);
    // Forward and back to x: no product is for a weight that is not trained.
    const double forward = 2 * 32 * static_cast<double>(16 * width + width * width + width * 4);
    CHECK(trainer.inspect().summary().flops <= 2 * forward);
  }
}

TEST_CASE("a frozen batch norm takes its running statistics, and keeps them") {
  Precision narrow = Precision::float32();
  narrow.layer("bn", DType::f16);
  Precision wide = Precision::float16(1);
  wide.layer("bn", DType::f32);
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::autocast(), narrow, wide}) {
    CAPTURE(precision.name);
    Graph graph;
    const Tensor x = graph.input("x", {4, 3});
    const Tensor y = models::batch_norm(graph.root() / "bn", x, {.epsilon = 1e-6F});
    const Tensor head = graph.root().parameter("head", {3}, constant(1));
    Trainer trainer = Trainer::compile(
        testing::device(), graph,
        {.loss = sum(mul(y, head)), .groups = {{.pattern = "bn/*", .frozen = true}}, .precision = precision});
    std::vector<float> values(12);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    trainer.step({{"x", std::span<const float>(values)}});
    trainer.finish();
    CHECK(trainer.report().loss == doctest::Approx(66).epsilon(1e-3));  // mean 0 and variance 1: x itself
    CHECK(trainer.parameter("bn/running_mean") == std::vector<float>(3, 0));
  }
}

TEST_CASE("a batch norm of which not all is frozen takes the batch's statistics") {
  // In mixed precision it reads a copy of the weight that is trained. What it is applied to says nothing of it.
  Precision precision = Precision::mixed();
  precision.loss_scale = LossScale::fixed(8);
  for (const bool of_frozen : {false, true}) {
    CAPTURE(of_frozen);
    Graph graph;
    const Scope bn = graph.root() / "bn";
    const Tensor x = of_frozen ? graph.root().parameter("x", {4, 3}, constant(5)) : graph.input("x", {4, 3});
    const Tensor weight = bn.parameter("weight", {3}, constant(1));
    const Tensor y = batch_norm(x, weight, bn.parameter("bias", {3}, constant(0)),
                                {bn.state("mean", {3}, constant(0)), bn.state("var", {3}, constant(1))});
    const std::string frozen = of_frozen ? "x" : "bn/bias";
    Trainer trainer = Trainer::compile(
        testing::device(), graph,
        {.loss = sum(mul(y, weight)), .groups = {{.pattern = frozen, .frozen = true}}, .precision = precision});
    const std::vector<float> fives(12, 5);
    std::map<std::string, Values> inputs;
    if (!of_frozen) inputs.emplace("x", std::span<const float>(fives));
    trainer.step(inputs);
    trainer.finish();
    CHECK(trainer.report().loss == doctest::Approx(0));
    CHECK(trainer.parameter("bn/mean")[0] == doctest::Approx(0.5));
  }
}

TEST_CASE("first values do not depend on groups") {
  const auto weights = [](std::vector<ParameterGroup> groups) {
    Graph graph;
    const Tensor x = graph.input("x", {4, 3});
    const Tensor y = models::dense(graph.root() / "b", models::dense(graph.root() / "a", x, 5), 2);
    Trainer trainer = Trainer::compile(
        testing::device(), graph, {.loss = sum(y), .groups = std::move(groups), .precision = Precision::float32()});
    const std::string names[] = {"a/weight", "b/weight"};
    return testing::all_weights(trainer, names);
  };
  CHECK(weights({}) == weights({{.pattern = "a/*", .frozen = true}}));
}

TEST_CASE("gradients are clipped to a norm over all of them, on the device") {
  for (const Precision& precision :
       {Precision::float32(), Precision::mixed(), Precision::float16(), Precision::bfloat16()}) {
    CAPTURE(precision.name);
    TrainerOptions options = plain(precision);
    if (precision.loss_scale.kind != LossScale::Kind::none) options.precision.loss_scale = LossScale::fixed(64);
    options.clip_norm = 3;
    options.optimizer = Sgd{.rate = 1};
    Trainer trainer = pulled(options);
    step(trainer, 0.5F);  // 18 gradients: a norm of 2.12
    CHECK(trainer.report().clip == 1);
    CHECK(trainer.report().gradient_norm == doctest::Approx(0.5 * std::sqrt(18.0)));
    CHECK(trainer.parameter("m/bias")[0] == 0.5F);
    step(trainer, 2);  // 8.49: scaled down to 3
    CHECK(trainer.report().clip == doctest::Approx(3 / (2 * std::sqrt(18.0))));
    CHECK(trainer.report().gradient_norm == doctest::Approx(2 * std::sqrt(18.0)));
    CHECK(trainer.parameter("m/bias")[0] == doctest::Approx(0.5 - 3 / std::sqrt(18.0)).epsilon(2e-3));
    step(trainer, std::numeric_limits<float>::infinity());
    CHECK(trainer.report().overflowed);
  }
}

TEST_CASE("groups that cannot be are refused") {
  const auto refused = [](std::vector<ParameterGroup> groups, const char* text) {
    TrainerOptions options = plain();
    options.groups = std::move(groups);
    CHECK_THROWS_WITH_AS(pulled(options), doctest::Contains(text), Error);
  };
  refused({{.pattern = "tail/*"}}, "a parameter for the group 'tail/*'");
  refused({{.pattern = "*", .frozen = true}}, "frozen ones only");
  refused({{.pattern = "*", .rate = -1}}, "rate and weight_decay");
  refused({{.pattern = "*", .weight_decay = std::numeric_limits<float>::infinity()}}, "rate and weight_decay");
  TrainerOptions options = plain();
  options.clip_norm = -1;
  CHECK_THROWS_WITH_AS(pulled(options), doctest::Contains("clip_norm"), Error);
}

}  // namespace halfstep
