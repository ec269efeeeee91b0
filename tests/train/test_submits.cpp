// A step that is cut into several submits gives the same numbers.
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include "harness/device.h"
#include "host/variable.h"
#include "step/execution.h"
#include "step/vk_work.h"
#include "train/small_training.h"
#include "vk/device/settings.h"

using namespace halfstep;

namespace {

/// What a few steps with every stage leave.
struct Trained {
  std::vector<float> weights;
  double loss;
  std::vector<TensorStatistics> records;
  std::uint64_t submits;
};

Trained train(const Device& device, const Dataset& set, const Precision& precision, int steps) {
  const auto change = [](TrainerOptions& options) {
    options.accumulate = 2;
    options.clip_norm = 0.5F;
    options.ema_decay = 0.9F;
  };
  Trainer trainer = testing::toy_trainer(
      set, {.batch = 16, .precision = precision, .dropout = 0.25F, .device = device, .change = change});
  trainer.inspect().watch("*");
  for (int i = 0; i < steps; ++i) trainer.step();
  trainer.finish();
  return {testing::toy_weights(trainer), trainer.evaluate(set).loss, trainer.inspect().take_records(),
          trainer.inspect().host_costs().submits};
}

}  // namespace

TEST_CASE("a step in many submits trains to the same bits as in one") {
  const Device one = Device::open({}, {.submit_milliseconds = 1e6});
  const Device many = Device::open({}, {.submit_milliseconds = 0.001});
  const Dataset set = testing::toy_dataset(96, {20, 18, 3}, 5);
  Precision precision = Precision::mixed();
  precision.gradient_scales = GradientScales::per_tensor;
  const Trained whole = train(one, set, precision, 3);
  const Trained cut = train(many, set, precision, 3);
  CHECK(whole.submits == 1);
  CHECK(cut.submits > 50);
  CHECK(cut.weights == whole.weights);
  CHECK(cut.loss == whole.loss);
  REQUIRE(cut.records.size() == whole.records.size());
  for (std::size_t i = 0; i < cut.records.size(); ++i) {
    CAPTURE(whole.records[i].name);
    CHECK(cut.records[i].rms == whole.records[i].rms);
    CHECK(cut.records[i].exponents == whole.records[i].exponents);
  }
}

TEST_CASE("a loss over many rows in many submits has the same bits as in one") {
  Graph graph = testing::settled_graph();
  const Tensor logits = graph.input("logits", {4000, 9});
  const Tensor labels = graph.input("labels", {4000}, DType::u32);
  const Tensor loss = cross_entropy(logits, labels);
  std::vector<float> values(4000 * 9);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 50;
  std::vector<std::uint32_t> classes(4000);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::uint32_t>(i * i % 9);
  const auto loss_with = [&](double milliseconds, std::size_t& submits) {
    const Device device = Device::open({}, {.submit_milliseconds = milliseconds});
    step::Execution execution(vk::context_of(device), graph.ir(), {loss.id()});
    execution.set(logits.id(), values);
    execution.set(labels.id(), classes);
    submits = execution.pieces();
    execution.run();
    return execution.floats(loss.id());
  };
  std::size_t one = 0;
  std::size_t many = 0;
  const std::vector<float> whole = loss_with(1e6, one);
  CHECK(loss_with(0.001, many) == whole);
  CHECK(one == 1);
  CHECK(many > 1);
}

TEST_CASE("the milliseconds of a submit are the application's, or the environment's, or 100, and positive") {
  CHECK(vk::settings({}).submit_milliseconds == 100);
  const Variable chosen("HALFSTEP_SUBMIT_MS", "12.5");
  CHECK(vk::settings({}).submit_milliseconds == 12.5);
  CHECK(vk::settings({.submit_milliseconds = 3}).submit_milliseconds == 3);
  for (const char* bad : {"0", "-1", "soon", "1s", "inf", "nan"}) {
    CAPTURE(bad);
    const Variable variable("HALFSTEP_SUBMIT_MS", bad);
    CHECK_THROWS_WITH_AS(vk::settings({}), doctest::Contains("expected HALFSTEP_SUBMIT_MS to be a positive number"),
                         Error);
  }
  CHECK_THROWS_AS(vk::settings({.submit_milliseconds = -1}), Error);
}
