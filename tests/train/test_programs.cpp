// Several programs over the weights of one trainer: other batch sizes, other graphs.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "run/program.h"
#include "train/evaluator.h"
#include "train/small_training.h"
#include "train/step_graph.h"
#include "train/workspace.h"

namespace halfstep {
namespace {

constexpr std::uint32_t classes = 4;

/// One model with batch norm and dropout, for batches of any size.
struct Model {
  explicit Model(std::int64_t batch, std::int64_t outputs = classes)
      : images(graph.input("images", {batch, 6, 5, 1})), labels(graph.input("labels", {batch}, DType::u32)) {
    const Tensor hidden =
        relu(models::batch_norm(graph.root() / "bn", models::same_conv(graph.root() / "conv", images, 6, 3)));
    logits = models::dense(graph.root() / "dense", dropout(flatten(max_pool2d(hidden)), 0.25F), outputs);
  }

  TrainerOptions options(const Precision& precision) const {
    return {.loss = cross_entropy(logits, labels),
            .metrics = {{"accuracy", accuracy(logits, labels)}},
            .optimizer = Adam{.rate = 0.01F},
            .precision = precision,
            .seed = 3};
  }

  TrainerOptions fed(const Precision& precision, const Dataset& set) const {
    TrainerOptions result = options(precision);
    result.feed = Feed{.samples = images, .labels = labels};
    result.training_set = &set;
    return result;
  }

  Graph graph;
  Tensor images;
  Tensor labels;
  Tensor logits;
};

/// Images and labels of the first samples of a set from `first` on.
struct Batch {
  Batch(const Dataset& set, std::int64_t first, std::int64_t count) {
    const std::int64_t size = set.sample_bytes();
    for (std::int64_t i = first * size; i < (first + count) * size; ++i) {
      images.push_back(static_cast<float>(set.samples[static_cast<std::size_t>(i)]) / 255);
    }
    labels.assign(set.labels.begin() + first, set.labels.begin() + first + count);
  }

  std::map<std::string, Values> values() const {
    return {{"images", std::span<const float>(images)}, {"labels", std::span<const std::uint32_t>(labels)}};
  }

  std::vector<float> images;
  std::vector<std::uint32_t> labels;
};

std::vector<float> weights_of(Trainer& trainer) {
  const std::string names[] = {"conv/weight",  "conv/bias",  "bn/weight",       "bn/bias",
                               "dense/weight", "dense/bias", "bn/running_mean", "bn/running_var"};
  return testing::all_weights(trainer, names);
}

}  // namespace

TEST_CASE("an evaluation in other batches reads a trainer's weights as they are") {
  const Dataset set = testing::toy_dataset(43, {6, 5, 1}, classes);
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    CAPTURE(precision.name);
    const Model model(8);
    Trainer trainer = Trainer::compile(testing::device(), model.graph, model.fed(precision, set));
    const Model other(5);
    const run::Workspace& workspace = trainer.workspace();
    step::StepGraph graph = train::evaluation_graph(other.graph, other.fed(precision, set));
    step::StepProgram lowered =
        step::evaluation_program(workspace.runtime->target, graph, workspace.store->spec().layout, precision);
    std::vector<train::EvaluationProgram> programs;
    programs.push_back({std::move(graph), std::move(lowered)});
    train::Evaluator evaluator(workspace, std::move(programs), {"accuracy"});
    double last = 0;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 7; ++i) trainer.step();
      const Evaluation got = evaluator.evaluate(set, [] { return false; });
      const Evaluation want = trainer.evaluate(set);
      CHECK(got.samples == 43);
      CHECK(got.loss == doctest::Approx(want.loss).epsilon(1e-5));
      CHECK(got.metrics.at("accuracy") == doctest::Approx(want.metrics.at("accuracy")));
      CHECK(got.loss != last);
      last = got.loss;
    }
  }
}

TEST_CASE("steps of two batch sizes take turns on one store as two trainers do through files") {
  const Dataset set = testing::toy_dataset(32, {6, 5, 1}, classes);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "turns.safetensors";
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16(16)}) {
    CAPTURE(precision.name);
    const Model large(8);
    const Model small(3);
    Trainer shared = Trainer::compile(testing::device(), large.graph, large.options(precision));
    Trainer a = Trainer::compile(testing::device(), large.graph, large.options(precision));
    Trainer b = Trainer::compile(testing::device(), small.graph, small.options(precision));
    const TrainerOptions options = small.options(precision);
    const run::Workspace& workspace = shared.workspace();
    const step::StepGraph graph = train::training_graph(small.graph, options);
    float loss = 0;
    run::Program program(workspace,
                         step::training_program(workspace.runtime->target, graph, workspace.store->spec().layout,
                                                {.precision = precision}, {}),
                         [&](const run::Program& self, const run::Slot& slot) { loss = self.mean_output(slot, 0); });
    for (int round = 0; round < 3; ++round) {
      const Batch of_large(set, 8 * round, 8);
      const Batch of_small(set, 5 * round, 3);
      shared.step(of_large.values());
      program.fill(program.slots().acquire(), "test", of_small.values());
      program.slots().submit();
      program.slots().drain();
      a.step(of_large.values());
      a.save(path);
      b.load(path);
      b.step(of_small.values());
      b.save(path);
      a.load(path);
      b.finish();
      CHECK(loss == b.report().loss);
      CHECK(weights_of(shared) == weights_of(a));
    }
    shared.step(Batch(set, 1, 8).values());
    shared.finish();
    CHECK(shared.report().step == 7);
    CHECK(shared.report().applied + shared.report().skipped == 7);
  }
}

TEST_CASE("a predictor over a trainer has its weights at every run, and keeps them when the trainer is gone") {
  const Dataset set = testing::toy_dataset(32, {6, 5, 1}, classes);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights.safetensors";
  const Model model(8);
  const Model one(1);
  std::optional<Trainer> trainer =
      Trainer::compile(testing::device(), model.graph, model.options(Precision::float32()));
  Predictor over = Predictor::compile(*trainer, one.graph, one.logits);
  Predictor from_file = Predictor::compile(testing::device(), one.graph, one.logits);
  const Batch sample(set, 9, 1);
  const std::map<std::string, Values> image{{"images", std::span<const float>(sample.images)}};
  std::vector<float> last;
  for (int round = 0; round < 3; ++round) {
    trainer->step(Batch(set, 8 * round, 8).values());
    trainer->save_weights(path);
    from_file.load_weights(path);
    const std::vector<float> got = over.run(image);
    const std::vector<float> want = from_file.run(image);
    REQUIRE(got.size() == classes);
    REQUIRE(want.size() == classes);
    // The one folds batch norm into the convolution before it runs, the other in every run.
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-6));
    CHECK(got != last);
    last = got;
  }
  trainer.reset();
  CHECK(over.run(image) == last);
  CHECK_THROWS_WITH_AS(over.load_weights(path), doctest::Contains("expected weights of its own"), Error);
}

TEST_CASE("a graph whose parameters a store does not have is refused by name") {
  const Model model(8);
  Trainer trainer = Trainer::compile(testing::device(), model.graph, model.options(Precision::mixed()));
  const Model wider(8, classes + 1);
  CHECK_THROWS_WITH_AS(Predictor::compile(trainer, wider.graph, wider.logits),
                       doctest::Contains("expected a store with 'dense/weight' f16 {36, 5}, got f16 {36, 4}"), Error);
  Graph other;
  const Tensor x = other.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(Predictor::compile(trainer, other, models::dense(other.root() / "another", x, 4)),
                       doctest::Contains("'another/weight' f16 {3, 4}, got none of that name"), Error);
}

TEST_CASE("a part of a model is predicted in the precision of the whole, which may name what the part lacks") {
  const auto with_body = [](Graph& graph) {
    const Tensor x = graph.input("x", {2, 4});
    return linear(x, (graph.root() / "body").parameter("weight", {4, 4}, constant(1)));
  };
  Graph whole;
  const Tensor body = with_body(whole);
  const Tensor loss = sum(linear(tanh(body), (whole.root() / "head").parameter("weight", {4, 3}, constant(1))));
  Precision precision = Precision::mixed().layer("body", DType::f32).layer("head", DType::f32);
  precision.operators["tanh"] = DType::f32;
  const Trainer trainer = Trainer::compile(testing::device(), whole, {.loss = loss, .precision = precision});
  Graph part;
  const Tensor features = with_body(part);
  // f16 would round these to 2048.
  const std::vector<float> values{2048, 1, 0, 0, 2048, 0, 0, 1};
  const std::vector<float> sums(8, 2049);
  Predictor predictor = Predictor::compile(trainer, part, features);
  CHECK(predictor.run({{"x", values}}) == sums);
  CHECK(Predictor::compile(predictor, part, features).run({{"x", values}}) == sums);
  CHECK_THROWS_WITH_AS(Predictor::compile(testing::device(), part, features, precision),
                       doctest::Contains("expected a layer 'head' in the graph, got none"), Error);
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), part, {.loss = sum(features), .precision = precision}),
                       doctest::Contains("expected a layer 'head' in the graph, got none"), Error);
}

}  // namespace halfstep
