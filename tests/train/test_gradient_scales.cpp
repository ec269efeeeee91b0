// Gradients with a scale per tensor: their effect, and what they do not affect.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/device.h"
#include "harness/values.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "train/scaled_gradients.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::scaled;
using testing::unscaled;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t rows = 9;
constexpr std::int64_t inputs = 5;
constexpr std::int64_t outputs = 7;

/// What layer l of `Layers` is fed: all of x {rows, inputs}, and all of its result's gradient {rows, outputs}.
struct Fed {
  float x = 1;
  float pull = 0;
};

/// Independent layers, y = x w with weights {inputs, outputs} named "0/w", "1/w", ..., and the sum of all sum(y pull)
/// as loss: the gradient of a weight is the sum over rows of x pull.
class Layers {
 public:
  Layers(std::size_t count, const Precision& precision, const std::function<void(TrainerOptions&)>& change = {})
      : trainer_(make(count, precision, change)) {}

  /// A step with these numbers for each layer.
  void step(const std::vector<Fed>& layers) { step_in_parts({layers}); }

  /// Likewise for each micro-batch.
  void step_in_parts(const std::vector<std::vector<Fed>>& micro_batches) {
    std::map<std::string, std::vector<float>> values;
    for (const std::vector<Fed>& layers : micro_batches) {
      for (std::size_t i = 0; i < layers.size(); ++i) {
        auto& x = values[fmt::format("x{}", i)];
        auto& pull = values[fmt::format("pull{}", i)];
        x.insert(x.end(), rows * inputs, layers[i].x);
        pull.insert(pull.end(), rows * outputs, layers[i].pull);
      }
    }
    step_on(values);
  }

  void step_on(const std::map<std::string, std::vector<float>>& values) {
    std::map<std::string, Values> spans;
    for (const auto& [name, all] : values) spans[name] = std::span<const float>(all);
    trainer_.step(spans);
    trainer_.finish();
  }

  std::vector<float> weights(std::size_t layer, Weights which = Weights::current) {
    return trainer_.parameter(fmt::format("{}/w", layer), which);
  }
  std::vector<float> gradient(std::size_t layer) {
    return trainer_.inspect().trace(fmt::format("{}/w.gradient", layer));
  }
  Trainer& trainer() { return trainer_; }

 private:
  static Trainer make(std::size_t count, const Precision& precision,
                      const std::function<void(TrainerOptions&)>& change) {
    Graph graph;
    std::optional<Tensor> loss;
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor x = graph.input(fmt::format("x{}", i), {rows, inputs});
      const Tensor pull = graph.input(fmt::format("pull{}", i), {rows, outputs});
      const Tensor w = (graph.root() / std::to_string(i)).parameter("w", {inputs, outputs}, constant(0));
      const Tensor term = sum(mul(matmul(x, w), pull));
      loss = loss ? add(*loss, term) : term;
    }
    TrainerOptions options{.loss = *loss, .optimizer = Adam{.rate = 0.125F}, .precision = precision};
    if (change) change(options);
    return Trainer::compile(testing::device(), graph, options);
  }

  Trainer trainer_;
};

std::vector<float> all(float value) {
  return std::vector<float>(inputs * outputs, value);
}

double largest_error(const std::vector<float>& got, const std::vector<double>& want) {
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]) / std::abs(want[i]));
  }
  return largest;
}

}  // namespace

TEST_CASE("a gradient that is too large for f16 costs its own tensor the step, and no other") {
  // The first layer's gradients are 9 * 4000 * 1000: beyond f16's range, even after the first backoff of 2^-8.
  const std::vector<Fed> fed{{4000, 1000}, {1, 0.5F}, {0.25F, -3}};
  Layers lost(3, unscaled());
  lost.step(fed);
  CHECK(lost.trainer().report().skipped == 1);
  CHECK(lost.weights(1) == all(0));
  const auto average = [](TrainerOptions& options) { options.ema_decay = 0.5F; };
  Layers kept(3, scaled(), average);
  Layers frozen(3, scaled(), [&](TrainerOptions& options) {
    average(options);
    options.groups = {{.pattern = "0/*", .frozen = true}};
  });
  for (std::uint64_t step = 1; step <= 2; ++step) {
    kept.step(fed);
    frozen.step(fed);
    CHECK(kept.trainer().report().applied == step);
    CHECK(kept.trainer().report().tensor_updates_skipped == step);
    CHECK(kept.weights(0) == all(0));
    CHECK(kept.weights(0, Weights::averaged) == all(0));
    for (const std::size_t layer : {1U, 2U}) {
      CHECK(kept.weights(layer) == frozen.weights(layer));
      CHECK(kept.weights(layer) != all(0));
      CHECK(kept.weights(layer, Weights::averaged) == frozen.weights(layer, Weights::averaged));
    }
  }
  kept.step(fed);
  CHECK(kept.trainer().report().tensor_updates_skipped == 2);
  CHECK(kept.trainer().report().skipped == 0);
  CHECK(kept.weights(0)[34] < -0.01F);
  CHECK(kept.weights(0, Weights::averaged)[34] < 0);
}

TEST_CASE("the weights of a tensor that skips an update are not limited") {
  Layers limited(2, scaled(), [](TrainerOptions& options) { options.weight_limit = 0.5F; });
  for (const char* name : {"0/w", "1/w"}) limited.trainer().set_parameter(name, all(1));
  limited.step({{4000, 1000}, {1, 0}});
  CHECK(limited.trainer().report().tensor_updates_skipped == 1);
  CHECK(limited.weights(0) == all(1));
  CHECK(limited.weights(1) == all(0.5F));
}

TEST_CASE("a tensor that was left out keeps its moments") {
  const std::function<void(TrainerOptions&)> momentum = [](TrainerOptions& options) {
    options.optimizer = Sgd{.rate = 0x1p-10F, .momentum = 0.5F};
  };
  Layers layers(1, scaled(Precision::float16()), momentum);
  layers.step({{1, 2}});  // gradients of 18
  layers.step({{4000, 1000}});
  CHECK(layers.trainer().report().tensor_updates_skipped == 1);
  CHECK(layers.weights(0) == all(-18 * 0x1p-10F));
  layers.step({{1, 0}});
  CHECK(layers.weights(0) == all(-27 * 0x1p-10F));
}

TEST_CASE("gradients that f16 has no numbers for arrive once their scale has risen") {
  const std::vector<Fed> fed{{0x1p-20F, 0x1p-10F}};  // gradients of 9 * 2^-30
  const std::function<void(TrainerOptions&)> still = [](TrainerOptions& options) {
    options.optimizer = Sgd{.rate = 1};
    options.trace = "*gradient";
  };
  Layers lost(1, unscaled(), still);
  Layers kept(1, scaled(), still);
  for (int i = 0; i < 7; ++i) {
    lost.step(fed);
    kept.step(fed);
  }
  CHECK(lost.weights(0) == all(0));
  CHECK(kept.gradient(0) == all(9 * 0x1p-30F));
  const std::vector<float> before = kept.weights(0);
  kept.step(fed);
  CHECK(kept.weights(0) == all(before[0] - 9 * 0x1p-30F));
}

TEST_CASE("an overflow further up still skips the step, and leaves scales as they are") {
  const std::vector<Fed> fed{{1, 1}, {1, 0x1p-8F}};
  Layers layers(2, scaled());
  for (int i = 0; i < 3; ++i) layers.step(fed);
  const std::vector<float> before = layers.weights(1);
  layers.trainer().inspect().watch("*gradient");
  for (const float bad : {infinity, -infinity, std::nanf("")}) layers.step({{1, bad}, fed[1]});
  CHECK(layers.trainer().report().applied == 3);
  CHECK(layers.trainer().report().skipped == 3);
  CHECK(layers.weights(1) == before);
  layers.step(fed);
  CHECK(layers.trainer().report().applied == 4);
  CHECK(layers.trainer().report().tensor_updates_skipped == 0);
  CHECK(layers.weights(1) != before);
  const std::vector<TensorStatistics> records = layers.trainer().inspect().take_records();
  REQUIRE(records.size() == 8);
  // 9 * 2^8 is between 2^11 and 2^12, and the second layer's scale has grown by 16x per step.
  for (const TensorStatistics& record : records) {
    CHECK(record.gradient_scale == (record.name == "0/w.gradient" ? 0x1p8F : 0x1p12F));
  }
}

TEST_CASE("scales follow the largest magnitude: down at once, up by four bits a step, within their limits") {
  Layers layers(1, scaled());
  layers.trainer().inspect().watch("*gradient");
  const auto scales = [&](const std::vector<float>& pulls) {
    std::vector<float> result;
    for (const float pull : pulls) layers.step({{1, pull}});
    for (const TensorStatistics& record : layers.trainer().inspect().take_records())
      result.push_back(record.gradient_scale);
    return result;
  };
  CHECK(scales({0, 0, 0, 0}) == std::vector<float>{1, 16, 256, 4096});
  // Gradients of 9 * 2^-6, stored as 9 * 2^10; then 2^9 times as large.
  CHECK(scales({0x1p-6F, 8, 8}) == std::vector<float>{0x1p16F, 0x1p14F, 0x1p6F});
  CHECK(layers.trainer().report().tensor_updates_skipped == 1);
  scales(std::vector<float>(7, 0));
  CHECK(scales({0, 0}) == std::vector<float>{0x1p24F, 0x1p24F});
}

TEST_CASE("gradients are what they are in double, but for one rounding, with scales of any size") {
  const reference::Array x = testing::rounded(testing::uniform({rows, inputs}, 1, 0.25, 1), DType::f16);
  for (const double size : {0x1p-22, 0x1p14}) {
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      CAPTURE(size);
      const reference::Array pull = testing::rounded(testing::uniform({rows, outputs}, 2, size / 2, size), DType::f16);
      Precision precision = scaled();
      precision.rounding.gradients = rounding;
      Layers layers(1, precision, [](TrainerOptions& options) {
        options.optimizer = Sgd{.rate = 0};
        options.trace = "*gradient";
      });
      const std::map<std::string, std::vector<float>> values{{"x0", {x.values.begin(), x.values.end()}},
                                                             {"pull0", {pull.values.begin(), pull.values.end()}}};
      for (int i = 0; i < 8; ++i) layers.step_on(values);
      std::vector<double> want(inputs * outputs, 0);
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < want.size(); ++i) {
          want[i] += x.values[row * inputs + i / outputs] * pull.values[row * outputs + i % outputs];
        }
      }
      // Pulls below 2^-14 have fewer digits, which rounded() gave `want` too. One unit of f16 is 2^-10 at the most.
      CHECK(largest_error(layers.gradient(0), want) < (rounding == Rounding::nearest ? 0x1p-11 : 0x1p-10) + 1e-6);
      CHECK(largest_error(layers.gradient(0), want) > 0);
    }
  }
}

TEST_CASE("a micro-batch that is too large leaves its tensor out, whatever the others add to it") {
  const std::function<void(TrainerOptions&)> three = [](TrainerOptions& options) {
    options.accumulate = 3;
    options.optimizer = Sgd{.rate = 0x1p-6F};
  };
  const Fed good{1, 2};  // gradients of 18
  Layers layers(2, scaled(), three);
  std::vector<std::vector<Fed>> step;
  // The gradients of two micro-batches cancel, and are still too large after two backoffs.
  for (std::size_t bad = 0; bad < 3; ++bad) {
    step.assign(3, {{1, -1}, good});
    step[bad][0] = {60000, 60000};
    step[(bad + 1) % 3][0] = {60000, -60000};
    layers.step_in_parts(step);
    CHECK(layers.trainer().report().tensor_updates_skipped == bad + 1);
    CHECK(layers.weights(0) == all(0));
    CHECK(layers.weights(1) == all(-18 * 0x1p-6F * static_cast<float>(bad + 1)));
  }
  step[1][0].pull = infinity;
  layers.step_in_parts(step);
  CHECK(layers.trainer().report().skipped == 1);
  CHECK(layers.trainer().report().tensor_updates_skipped == 3);
  // The gradients in the sums have one scale, 2^-24 by now, and the mean is unscaled once.
  layers.step_in_parts({{{4096, 4096}, good}, {{4096, -8192}, good}, {{4096, 16384}, good}});
  CHECK(layers.weights(0) == all(-9 * 0x1p18F));
}

TEST_CASE("clipping goes by the norm of the gradients that are not left out, unscaled") {
  const std::vector<Fed> fed{{4000, 1000}, {1, 0.5F}, {0.25F, -3}};
  const auto clipped = [](Layers& layers, const std::vector<Fed>& with) {
    layers.step(with);
    return layers.trainer().report().clip;
  };
  const std::function<void(TrainerOptions&)> limit = [](TrainerOptions& options) { options.clip_norm = 3; };
  Layers layers(3, scaled(), limit);
  Layers frozen(3, scaled(), [&](TrainerOptions& options) {
    limit(options);
    options.groups = {{.pattern = "0/*", .frozen = true}};
  });
  for (int i = 0; i < 2; ++i) {
    const float clip = clipped(layers, fed);
    CHECK(clip == clipped(frozen, fed));
    CHECK(clip == doctest::Approx(3 / std::sqrt(35 * (4.5 * 4.5 + 6.75 * 6.75))));
  }
  CHECK(clipped(layers, fed) == doctest::Approx(3 / std::sqrt(35 * 3.6e7 * 3.6e7)).epsilon(1e-3));
}

TEST_CASE("a run with scales of gradients that was resumed ends on the same bits, and older files load") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint";
  const Dataset set = testing::toy_dataset(203, {6, 5, 1}, 3);
  const auto run = [](Trainer& trainer, int steps) {
    for (int i = 0; i < steps; ++i) trainer.step();
    trainer.finish();
  };
  Precision precision = scaled();
  precision.rounding.gradients = Rounding::stochastic;
  // The loss is so small that gradients would be subnormal without their scales, and would be rounded differently.
  const testing::ToyOptions options{.precision = precision,
                                    .change = [](TrainerOptions& made) { made.loss = scale(made.loss, 0x1p-8F); }};
  Trainer whole = testing::toy_trainer(set, options);
  run(whole, 40);
  Trainer first = testing::toy_trainer(set, options);
  run(first, 19);
  first.save(file);
  Trainer second = testing::toy_trainer(set, options);
  run(second, 3);
  second.load(file);
  CHECK(second.report().tensor_updates_skipped == first.report().tensor_updates_skipped);
  run(second, 21);
  CHECK(testing::toy_weights(second) == testing::toy_weights(whole));
  const io::SafetensorsFile saved(file);
  std::vector<io::StoredTensor> older;
  for (io::StoredTensor tensor : saved.tensors()) {
    if (tensor.name == "halfstep.gradient_scales") continue;
    if (tensor.name == "halfstep.state") {
      tensor.data = tensor.data.first(64);
      tensor.shape = {16};
    }
    older.push_back(tensor);
  }
  io::write_safetensors(folder.path() / "older", older, saved.metadata());
  second.load(folder.path() / "older");
  run(second, 21);
  CHECK(second.report().step == 40);
  CHECK(testing::toy_weights(second) != testing::toy_weights(whole));
}

TEST_CASE("scales in a file that are none are refused, and change nothing") {
  const TemporaryFolder folder;
  Layers layers(2, scaled());
  layers.step({{1, 1}, {1, 1}});
  layers.trainer().save(folder.path() / "good");
  const io::SafetensorsFile good(folder.path() / "good");
  const std::vector<float> before = layers.weights(0);
  for (const std::vector<float>& scales : {std::vector<float>{1, 3}, {1, 0x1p25F}, {1, -1}, {1, std::nanf("")}, {1}}) {
    std::vector<io::StoredTensor> tensors = good.tensors();
    for (io::StoredTensor& tensor : tensors) {
      if (tensor.name != "halfstep.gradient_scales") continue;
      tensor.shape = {std::ssize(scales)};
      tensor.data = std::as_bytes(std::span(scales));
    }
    io::write_safetensors(folder.path() / "bad", tensors, good.metadata());
    CHECK_THROWS_WITH_AS(layers.trainer().load(folder.path() / "bad"), doctest::Contains("gradient_scales"), Error);
    CHECK(layers.weights(0) == before);
  }
}

TEST_CASE("scales of gradients are refused where there is nothing to scale, or no telling what is too large") {
  CHECK_THROWS_WITH_AS(Layers(1, scaled(Precision::float32())), doctest::Contains("scales of gradients"), Error);
  CHECK_THROWS_WITH_AS(Layers(1, scaled(Precision::autocast())), doctest::Contains("scales of gradients"), Error);
  Precision saturating = scaled();
  saturating.overflow = Overflow::saturate;
  CHECK_THROWS_WITH_AS(Layers(1, saturating), doctest::Contains("saturation"), Error);
}

TEST_CASE("explain() and plan() say that gradients have scales") {
  Layers with(1, scaled());
  Layers without(1, unscaled());
  CHECK(with.trainer().inspect().explain().find("gradient_scales") != std::string::npos);
  CHECK(without.trainer().inspect().explain().find("gradient_scales") == std::string::npos);
  CHECK(with.trainer().inspect().plan().find("gradients (f16, with a scale for each tensor)") != std::string::npos);
  CHECK(with.trainer().inspect().plan().find("choose scales") != std::string::npos);
  CHECK(with.trainer().inspect().summary().gradient_bytes > without.trainer().inspect().summary().gradient_bytes);
}

}  // namespace halfstep
