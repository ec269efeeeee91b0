#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/device.h"
#include "models/layers.h"
#include "train/small_training.h"

/// Options that are set member by member, undefined tensors, and invalid data sets.
namespace halfstep {
namespace {

const Dataset& training_set() {
  static const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  return set;
}

/// The network of testing::toy_trainer.
struct Toy {
  Graph graph;
  Tensor images = graph.input("images", {8, 6, 5, 1});
  Tensor labels = graph.input("labels", {8}, DType::u32);
  Tensor logits = models::dense(graph.root() / "dense",
                                flatten(max_pool2d(relu(models::same_conv(graph.root() / "conv", images, 6, 3)))), 3);

  TrainerOptions options() const {
    TrainerOptions options;
    options.loss = cross_entropy(logits, labels);
    options.feed = Feed{.samples = images, .labels = labels};
    options.training_set = &training_set();
    return options;
  }
  std::string refusal(const TrainerOptions& options) const {
    try {
      Trainer::compile(testing::device(), graph, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

}  // namespace

TEST_CASE("options set member by member train as those given at once do") {
  Toy toy;
  Feed feed;
  feed.samples = toy.images;
  feed.labels = toy.labels;
  ParameterGroup group;
  group.pattern = "dense/*";
  group.rate = 1;
  TrainerOptions options;
  options.loss = cross_entropy(toy.logits, toy.labels);
  options.metrics["accuracy"] = accuracy(toy.logits, toy.labels);
  options.optimizer = Adam{.rate = 0.01F};
  options.groups.push_back(group);
  options.seed = 3;
  options.feed = feed;
  options.training_set = &training_set();
  Trainer trainer = Trainer::compile(testing::device(), toy.graph, options);
  Trainer at_once = testing::toy_trainer(training_set(), {});
  for (Trainer* each : {&trainer, &at_once}) {
    for (int i = 0; i < 7; ++i) each->step();
    each->finish();
  }
  CHECK(trainer.report().metrics.at("accuracy") == at_once.report().metrics.at("accuracy"));
  CHECK(testing::toy_weights(trainer) == testing::toy_weights(at_once));
}

TEST_CASE("tensors that were never set are refused at compile, by what they are for") {
  const Toy toy;
  TrainerOptions options = toy.options();
  options.loss = {};
  CHECK(toy.refusal(options) ==
        "[trainer] expected a loss, got a tensor that was never set. Hint: set TrainerOptions::loss");
  CHECK(toy.refusal({}).find("a loss") != std::string::npos);
  options = toy.options();
  options.metrics["accuracy"];
  CHECK(toy.refusal(options) ==
        "[trainer] expected a value for the metric 'accuracy', got a tensor that was never set");
  options = toy.options();
  options.feed = Feed{};
  CHECK(toy.refusal(options).find("[feed] expected an input for the samples, got a tensor that was never set") == 0);
  options.feed->samples = toy.images;
  CHECK(toy.refusal(options).find("[feed] expected an input for the labels, got a tensor that was never set") == 0);
  CHECK_THROWS_WITH_AS(Predictor::compile(testing::device(), toy.graph, Tensor()),
                       "[predictor] expected an output, got a tensor that was never set", Error);
}

TEST_CASE("images of a graph without labels are fed, and augmented, by their name alone") {
  Graph graph;
  const Tensor images = graph.input("images", {8, 6, 5, 1});
  const Tensor brightness = mean(images);
  const Tensor guess = graph.root().parameter("guess", {}, constant(0));
  Trainer trainer = Trainer::compile(testing::device(), graph,
                                     {.loss = mse_loss(guess, brightness),
                                      .precision = Precision::float32(),
                                      .feed = Feed{.samples = images, .augmentation = {.brightness = 0.3F}},
                                      .training_set = &training_set()});
  trainer.step();
  trainer.finish();
  CHECK(trainer.report().loss > 0);
}

TEST_CASE("tensors of another graph are refused at compile") {
  const Toy toy;
  const Toy other;
  TrainerOptions options = toy.options();
  options.loss = other.options().loss;
  CHECK(toy.refusal(options).find("[trainer] expected a loss of the graph, got 'cross_entropy") == 0);
  options = toy.options();
  options.metrics["accuracy"] = accuracy(other.logits, other.labels);
  CHECK(toy.refusal(options).find("metric 'accuracy' of the graph") != std::string::npos);
  options = toy.options();
  options.feed->labels = other.labels;
  CHECK(toy.refusal(options).find("[feed] expected an input for the labels of the graph") == 0);
  CHECK_THROWS_WITH_AS(Predictor::compile(testing::device(), toy.graph, other.logits),
                       doctest::Contains("an output of the graph"), Error);
}

TEST_CASE("a data set whose members disagree is refused where it is trained on and evaluated") {
  const Toy toy;
  Dataset bad = training_set();
  TrainerOptions options = toy.options();
  options.training_set = &bad;
  bad.count = 48;
  CHECK(toy.refusal(options) == "[data] 'toy': expected the bytes of 48 samples {6, 5, 1}, got 1200");
  Trainer trainer = Trainer::compile(testing::device(), toy.graph, toy.options());
  CHECK_THROWS_WITH_AS(trainer.evaluate(bad), doctest::Contains("the bytes of 48 samples"), Error);
  bad = training_set();
  bad.labels.resize(39);
  CHECK(toy.refusal(options).find("expected 40 labels, got 39") != std::string::npos);
  CHECK_THROWS_WITH_AS(trainer.evaluate(bad), doctest::Contains("expected 40 labels, got 39"), Error);
  bad = training_set();
  bad.labels[17] = 3;
  CHECK(toy.refusal(options).find("below its 3 classes, got 3 for sample 17") != std::string::npos);
  CHECK_THROWS_WITH_AS(trainer.evaluate(bad), doctest::Contains("got 3 for sample 17"), Error);
  CHECK(trainer.evaluate(training_set()).samples == 40);
}

TEST_CASE("empty functions: an evaluation that nothing ends, and a model that nobody builds") {
  const Toy toy;
  Trainer trainer = Trainer::compile(testing::device(), toy.graph, toy.options());
  CHECK(trainer.evaluate(training_set(), Weights::current, nullptr).samples == 40);
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), Trainer::Model{}, 8),
                       "[trainer] expected a function that builds the model, got none", Error);
}

// Windows that are longer than the text they lie on: data, and no sample.
TEST_CASE("a training set without samples is refused, as an evaluation of it is") {
  Field windows = Field::own("tokens", {4}, std::vector<float>(3));
  windows.stride = 1;
  const Dataset none = Dataset::of("short", {windows});
  CHECK(none.count == 0);
  Graph graph;
  const Tensor tokens = graph.input("tokens", {2, 4});
  const Tensor weight = graph.root().parameter("weight", {4}, constant(1));
  TrainerOptions options;
  options.loss = mean(mul(tokens, weight));
  options.feed = Feed{.inputs = {{.input = tokens}}};
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  CHECK_THROWS_WITH_AS(trainer.evaluate(none), "[evaluate] expected samples, got none in 'short'", Error);
  options.training_set = &none;
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), graph, options),
                       "[trainer] expected a training set with samples, got none in 'short'", Error);
}

TEST_CASE("a batch that no memory has room for is refused, and so is it times its micro-batches") {
  Graph graph;
  const std::int64_t batch = std::int64_t{1} << 53;
  const Tensor samples = graph.input("samples", {batch, 4});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  TrainerOptions options;
  options.loss = cross_entropy(models::dense(graph.root() / "dense", samples, 3), labels);
  options.feed = Feed{.samples = samples, .labels = labels};
  options.accumulate = 1024;
  CHECK_THROWS_AS(Trainer::compile(testing::device(), graph, options), Error);
  const Dataset set = testing::toy_dataset(40, {4}, 3);
  options.training_set = &set;
  CHECK_THROWS_AS(Trainer::compile(testing::device(), graph, options), Error);
}

}  // namespace halfstep
