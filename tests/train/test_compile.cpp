#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <string>

#include "harness/device.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

/// The error of compiling a one-weight model with these options; empty if there is none.
std::string refusal(Optimizer optimizer, Precision precision = Precision::mixed()) {
  try {
    testing::Pull(4, 1, std::move(optimizer), std::move(precision));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Precision with(LossScale scale) {
  Precision precision = Precision::mixed();
  precision.loss_scale = scale;
  return precision;
}

}  // namespace

TEST_CASE("hyperparameters out of range are refused by name, at compile") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(refusal(Sgd{.rate = -1.0F}).find("rate") != std::string::npos);
  CHECK(refusal(Sgd{.rate = nan}).find("rate") != std::string::npos);
  CHECK(refusal(Sgd{.momentum = 1}).find("momentum") != std::string::npos);
  CHECK(refusal(Sgd{.nesterov = true}).find("nesterov") != std::string::npos);
  CHECK(refusal(Sgd{.weight_decay = -1}).find("weight_decay") != std::string::npos);
  CHECK(refusal(Adam{.beta1 = 1}).find("beta1") != std::string::npos);
  CHECK(refusal(Adam{.epsilon = 0}).find("epsilon") != std::string::npos);
  CHECK(refusal(Adam{}).empty());
}

TEST_CASE("what would have one name in files is refused at compile, not when it is saved") {
  const auto compile = [](const char* scope, const char* name, const Optimizer& optimizer, float ema_decay = 0) {
    Graph graph;
    const Tensor w = graph.root().parameter("w", {4}, constant(1));
    const Tensor other = (graph.root() / scope).parameter(name, {4}, constant(1));
    Trainer::compile(testing::device(), graph,
                     {.loss = sum(mul(w, other)), .optimizer = optimizer, .ema_decay = ema_decay});
  };
  CHECK_THROWS_WITH_AS(compile("w", "momentum", Sgd{.momentum = 0.5F}),
                       doctest::Contains("expected a name in files that nothing else has for 'w"), Error);
  CHECK_THROWS_WITH_AS(compile("w", "average", Sgd{}, 0.5F), doctest::Contains("got 'w.average'"), Error);
  compile("w", "momentum", Sgd{});
  compile("w", "average", Sgd{});
  // What files have beside a model's tensors: load_weights passes over all of that, and resuming over some.
  for (const char* name : {"state", "weight", "ranking"}) {
    const std::string text =
        fmt::format("expected a name in files that nothing else has for 'halfstep/{}', got 'halfstep.{}'", name, name);
    CHECK_THROWS_WITH_AS(compile("halfstep", name, Sgd{}), doctest::Contains(text.c_str()), Error);
    Graph graph;
    const Tensor w = (graph.root() / "halfstep").parameter(name, {4}, constant(1));
    CHECK_THROWS_WITH_AS(Predictor::compile(testing::device(), graph, scale(w, 2)), doctest::Contains(text.c_str()),
                         Error);
  }
  compile("halfsteps", "weight", Sgd{});
}

TEST_CASE("a precision that cannot be is refused with a reason") {
  Precision wide = Precision::float32();
  wide.rounding.weights = Rounding::stochastic;
  CHECK(refusal(Sgd{}, wide).find("stochastic") != std::string::npos);
  wide = Precision::float32();
  wide.partials.matmul = DType::f16;
  CHECK(refusal(Sgd{}, wide).find("partials") != std::string::npos);
  CHECK(refusal(Sgd{}, with(LossScale::fixed(0))).find("loss scale") != std::string::npos);
  CHECK(refusal(Sgd{}, with(LossScale{.kind = LossScale::Kind::dynamic, .initial = 1, .floor = 2})).find("floor") !=
        std::string::npos);
}

TEST_CASE("a loss must be a scalar, and inputs must be the ones the graph has") {
  Graph graph;
  const Tensor x = graph.input("x", {4});
  const Tensor w = graph.root().parameter("w", {4}, constant(1));
  const Tensor y = mul(w, x);
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), graph, {.loss = y}), doctest::Contains("scalar"), Error);
  Trainer trainer = Trainer::compile(testing::device(), graph, {.loss = sum(y)});
  const std::vector<float> four(4);
  const std::vector<float> three(3);
  CHECK_THROWS_AS(trainer.step(), Error);
  CHECK_THROWS_WITH_AS(trainer.step({{"x", std::span<const float>(three)}}), doctest::Contains("4 values"), Error);
  CHECK_THROWS_WITH_AS(trainer.step({{"z", std::span<const float>(four)}}), doctest::Contains("'z'"), Error);
  CHECK_THROWS_AS(trainer.step(std::map<std::string, Values>{}), Error);
  trainer.step({{"x", std::span<const float>(four)}});
  trainer.finish();
  CHECK(trainer.report().step == 1);
}

TEST_CASE("a set of more classes than the model has is refused, to train with and to evaluate") {
  const Dataset three = testing::toy_dataset(16, {4, 4, 1}, 3, 5);
  const Dataset four = testing::toy_dataset(16, {4, 4, 1}, 4, 5);
  testing::ToyOptions options{.batch = 8};
  Trainer trainer = testing::toy_trainer(four, options);
  CHECK(trainer.evaluate(three).samples == 16);
  options.change = [&](TrainerOptions& made) { made.training_set = &four; };
  const char* const refusal = "at most 3 classes, as many as cross_entropy has logits, got 4 in 'toy'";
  CHECK_THROWS_WITH_AS(testing::toy_trainer(three, options), doctest::Contains(refusal), Error);
  Trainer smaller = testing::toy_trainer(three, {.batch = 8});
  CHECK_THROWS_WITH_AS(smaller.evaluate(four), doctest::Contains(refusal), Error);
}

TEST_CASE("a tensor of more elements than kernels can index is an error that names it and the limit") {
  Graph graph;
  const Tensor x = graph.input("huge", {1 << 16, 1 << 16});
  const Tensor w = graph.root().parameter("w", {1 << 16}, constant(1));
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), graph, {.loss = mean(bias(x, w))}),
                       doctest::Contains("{65536, 65536} of 4294967296"), Error);
}

TEST_CASE("parameters may share a gradient, be their own loss, or be reshaped") {
  Graph graph;
  const Tensor a = graph.root().parameter("a", {3}, constant(1));
  const Tensor b = graph.root().parameter("b", {3}, constant(1));
  const Tensor loss = sum(reshape(add(a, b), {3, 1}));
  Trainer trainer = Trainer::compile(
      testing::device(), graph,
      {.loss = loss, .metrics = {{"same", loss}}, .optimizer = Sgd{.rate = 0.5F}, .precision = Precision::float32()});
  trainer.step(std::map<std::string, Values>{});
  CHECK(trainer.parameter("a") == std::vector<float>(3, 0.5F));
  CHECK(trainer.parameter("b") == std::vector<float>(3, 0.5F));
  CHECK(trainer.report().loss == 6);
  CHECK(trainer.report().metrics.at("same") == 6);
}

TEST_CASE("plan() and explain() tell every dispatch and operator") {
  const Dataset set = testing::toy_dataset(20, {6, 5, 1}, 3);
  const Trainer trainer = testing::toy_trainer(set, {});
  const std::string plan = trainer.inspect().plan();
  for (const char* part : {"feed", "conv/conv2d", "max_pool2d", "cross_entropy", "check", "update", "rescale"}) {
    CHECK_MESSAGE(plan.find(part) != std::string::npos, part);
  }
  const std::string explained = trainer.inspect().explain();
  CHECK(explained.find("conv/conv2d") != std::string::npos);
  CHECK(explained.find("weights, as operators read them") != std::string::npos);
}

}  // namespace halfstep
