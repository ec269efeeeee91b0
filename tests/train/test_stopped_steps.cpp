#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <limits>
#include <span>
#include <string>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

const Dataset& training_set() {
  static const Dataset set = testing::toy_dataset(53, {6, 5, 1}, 3);
  return set;
}

testing::ToyOptions stopping(std::uint64_t resident_limit, std::int64_t micro_batches) {
  Precision precision = Precision::float32();
  precision.stop_on = {.overflow = true, .invalid = true};
  testing::ToyOptions options{
      .precision = precision, .resident_limit = resident_limit, .augmentation = {.flip = 0.5F}, .dropout = 0.3F};
  options.batch = 8 / micro_batches;
  options.change = [=](TrainerOptions& made) { made.accumulate = micro_batches; };
  return options;
}

/// Writes weights of toy_trainer that overflow in every forward pass.
void write_huge_weights(const std::filesystem::path& path) {
  const std::vector<float> values(std::size_t{3} * 36, 3e38F);
  const auto bytes = [&](std::size_t count) { return std::as_bytes(std::span(values).first(count)); };
  io::write_safetensors(path,
                        {{"conv.weight", "F32", {6, 1, 3, 3}, bytes(54)},
                         {"conv.bias", "F32", {6}, bytes(6)},
                         {"dense.weight", "F32", {3, 36}, bytes(108)},
                         {"dense.bias", "F32", {3}, bytes(3)}},
                        {});
}

/// The weights after fourteen steps; step 6 is stopped `stops` times, and then continues normally.
std::vector<float> weights_after(const testing::ToyOptions& options, int stops, const std::filesystem::path& folder) {
  Trainer trainer = testing::toy_trainer(training_set(), options);
  double loss = 0;
  const auto step = [&] {
    trainer.step();
    loss += static_cast<double>(trainer.report().loss);
  };
  for (int i = 0; i < 5; ++i) step();
  const StepReport report = trainer.report();
  trainer.save_weights(folder / "before");
  for (int i = 0; i < stops; ++i) {
    trainer.load_weights(folder / "huge");
    CHECK_THROWS_WITH_AS(trainer.step(), doctest::Contains("in step 6"), Error);
    trainer.load_weights(folder / "before");
    CHECK(trainer.report().step == 5);
    CHECK(trainer.report().loss == report.loss);
  }
  for (int i = 0; i < 9; ++i) step();
  const StepTotals totals = trainer.take_totals();
  CHECK(totals.steps == 14);
  CHECK(totals.mean_loss == doctest::Approx(loss / 14).epsilon(1e-12));
  CHECK(trainer.report().step == 14);
  CHECK(trainer.report().skipped == 0);
  return testing::toy_weights(trainer);
}

/// A weight of 1 whose gradient, `pull`, training does not stop at: only at NaN.
testing::Pull stopping_at_nan() {
  Precision precision = Precision::float32();
  precision.stop_on = {.invalid = true};
  return {1, 1, Sgd{.rate = 0.5F}, precision};
}

/// What a step stops with that fills x {4} of each micro-batch with one of `values`, but where it is 0: there only the
/// third element is 0, and the others are 1.
std::string stopped_with(Graph& graph, Tensor loss, StopOn stop_on, std::span<const float> values) {
  TrainerOptions options{.loss = loss, .accumulate = static_cast<std::int64_t>(values.size())};
  options.optimizer = Sgd{.rate = 0};
  options.precision = Precision::float32();
  options.precision.stop_on = stop_on;
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  std::vector<float> x;
  for (const float value : values) {
    x.insert(x.end(), 4, value == 0 ? 1.0F : value);
    if (value == 0) x[x.size() - 2] = 0;
  }
  try {
    trainer.step({{"x", std::span<const float>(x)}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the totals count a step that was stopped once, even where its loss was finite") {
  // x times the loss scale is infinite, x itself is not.
  Graph graph;
  const Tensor x = graph.input("x", {1});
  const Tensor w = graph.root().parameter("w", {1}, constant(1));
  TrainerOptions options{.loss = sum(mul(x, w))};
  options.optimizer = Sgd{.rate = 0};
  options.precision.stop_on = {.overflow = true};
  options.precision.loss_scale = LossScale::fixed(1024);
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  const auto step = [&](float value) { trainer.step({{"x", std::span<const float>(&value, 1)}}); };
  step(1);
  CHECK_THROWS_WITH_AS(step(1e38F), doctest::Contains("in step 2"), Error);
  step(3);
  const StepTotals totals = trainer.take_totals();
  CHECK(totals.steps == 2);
  CHECK(totals.mean_loss == 2);
}

TEST_CASE("a gradient that is not finite skips the step where training does not stop at such numbers") {
  testing::Pull pull = stopping_at_nan();
  pull.step(std::numeric_limits<float>::infinity());
  CHECK(pull.trainer().report().step == 1);
  CHECK(pull.trainer().report().skipped == 1);
  CHECK(pull.weights() == std::vector{1.0F});
  pull.step(1);
  CHECK(pull.trainer().report().step == 2);
  CHECK(pull.trainer().report().applied == 1);
  CHECK(pull.weights() == std::vector{0.5F});
}

TEST_CASE("a step that was stopped is taken again on its own batch, from a resident set as from a streamed one") {
  const TemporaryFolder folder;
  write_huge_weights(folder.path() / "huge");
  for (const std::int64_t micro_batches : {1, 2}) {
    CAPTURE(micro_batches);
    const testing::ToyOptions resident = stopping(0, micro_batches);
    const testing::ToyOptions streamed = stopping(1, micro_batches);
    const std::vector<float> undisturbed = weights_after(resident, 0, folder.path());
    CHECK(weights_after(resident, 1, folder.path()) == undisturbed);
    CHECK(weights_after(streamed, 0, folder.path()) == undisturbed);
    CHECK(weights_after(streamed, 1, folder.path()) == undisturbed);
    CHECK(weights_after(streamed, 3, folder.path()) == undisturbed);
  }
}

TEST_CASE("training stops with the numbers of a micro-batch whose places later ones take: of a state") {
  Graph graph;
  const Tensor x = graph.input("x", {4});
  const Tensor w = graph.root().parameter("w", {4}, constant(1));
  const Tensor s = graph.root().state("s", {4}, constant(1));
  update(s, div(x, x));
  const float values[] = {0, 1, 1};
  const std::string text = stopped_with(graph, sum(mul(w, x)), {.invalid = true}, values);
  CAPTURE(text);
  CHECK(text.find("NaN from div in 'div:0' f32 {4} at {2}") != std::string::npos);
  CHECK(text.find("(OFLO 0, DIV0 0, INV 1) in micro-batch 0") != std::string::npos);
}

TEST_CASE("training stops with the numbers of a micro-batch whose places later ones take: of an operator's input") {
  Graph graph;
  const Tensor x = graph.input("x", {4});
  const Tensor w = graph.root().parameter("w", {4}, constant(1));
  const Tensor s = graph.root().state("s", {4}, constant(1));
  update(s, div(s, x));
  const float values[] = {0.5F, 0.25F, 0, 0.5F};
  const std::string text = stopped_with(graph, sum(mul(w, x)), {.divide_by_zero = true}, values);
  CAPTURE(text);
  CHECK(text.find("infinity from div in 'div:0' f32 {4} at {2}") != std::string::npos);
  CHECK(text.find("'s' 8, 'x' 0 (OFLO 0, DIV0 1, INV 0) in micro-batch 2") != std::string::npos);
}

TEST_CASE("training stops with the numbers of a micro-batch whose places later ones take: of a gradient") {
  Graph graph;
  const Tensor x = graph.input("x", {4});
  const Tensor w = graph.root().parameter("w", {4}, constant(1e-30F));
  const Tensor loss = sum(mul(scale(w, 1e20F), scale(x, 1e20F)));
  const float values[] = {1, -1};  // the mean of both gradients is no number
  const std::string text = stopped_with(graph, loss, {.overflow = true}, values);
  CAPTURE(text);
  CHECK(text.find("infinity from") != std::string::npos);
  CHECK(text.find("in 'w.gradient' f32 {4}") != std::string::npos);
  CHECK(text.find("(OFLO 1, DIV0 0, INV 0) in micro-batch 0") != std::string::npos);
}

TEST_CASE("steps that look at tensors are not timed") {
  Trainer stops = testing::toy_trainer(training_set(), stopping(0, 1));
  Trainer traces =
      testing::toy_trainer(training_set(), {.change = [](TrainerOptions& options) { options.trace = "*"; }});
  for (Trainer* trainer : {&stops, &traces}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(trainer->inspect().profile(1)), doctest::Contains("looks at tensors"),
                         Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(trainer->inspect().timeline(1)), doctest::Contains("looks at tensors"),
                         Error);
    trainer->finish();
    CHECK(trainer->report().step == 0);
  }
}

}  // namespace halfstep
