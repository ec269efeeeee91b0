#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "harness/device.h"
#include "train/small_training.h"

namespace halfstep {

TEST_CASE("the norm of gradients is reported without clipping too, and changes no bit") {
  const auto norm = [](TrainerOptions& options) { options.gradient_norm = true; };
  Precision precision = Precision::mixed();
  precision.loss_scale = LossScale::fixed(64);
  testing::Pull with(6, 1, Sgd{.rate = 1}, precision, 5, norm);
  testing::Pull without(6, 1, Sgd{.rate = 1}, precision);
  for (const float pull : {0.25F, -2.0F}) {
    with.step(pull);
    without.step(pull);
    CHECK(with.trainer().report().gradient_norm == doctest::Approx(std::abs(pull) * std::sqrt(6.0)));
    CHECK(std::isnan(without.trainer().report().gradient_norm));
    CHECK(with.trainer().report().clip == 1);
  }
  CHECK(with.weights() == without.weights());
}

TEST_CASE("every step's report can be taken once, in order, those of recorded and timed steps included") {
  const Dataset set = testing::toy_dataset(64, {6, 5, 1}, 3);
  Trainer trainer = testing::toy_trainer(set, {});
  Inspector inspector = trainer.inspect();
  trainer.step();
  trainer.finish();
  CHECK(inspector.take_reports().empty());
  inspector.watch("*.gradient", 2);
  for (int i = 0; i < 5; ++i) trainer.step();
  static_cast<void>(inspector.timeline(2));
  trainer.step();
  trainer.finish();
  std::vector<std::uint64_t> steps;
  for (const StepReport& report : inspector.take_reports()) steps.push_back(report.step);
  CHECK(steps == std::vector<std::uint64_t>{2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(inspector.take_reports().empty());
}

TEST_CASE("steps on a timeline are the steps that they would have been, on one clock for device, host and loader") {
  const Dataset set = testing::toy_dataset(64, {6, 5, 1}, 3);
  const testing::ToyOptions streamed{.resident_limit = 1};  // a loader gathers batches
  Trainer trainer = testing::toy_trainer(set, streamed);
  Trainer other = testing::toy_trainer(set, streamed);
  constexpr std::int64_t steps = 4;
  const Timeline timeline = trainer.inspect().timeline(steps);
  for (std::int64_t i = 0; i < steps; ++i) other.step();
  CHECK(testing::toy_weights(trainer) == testing::toy_weights(other));
  CHECK_THROWS_WITH_AS(static_cast<void>(trainer.inspect().timeline(0)), doctest::Contains("at least one step"), Error);

  std::map<std::string, std::vector<HostSpan>> spans;
  for (const HostSpan& span : timeline.host) {
    CHECK(span.time.begin <= span.time.end);
    spans[span.what].push_back(span);
  }
  CHECK(spans["fill"].size() == steps);
  CHECK(spans["submit"].size() == steps);
  CHECK(spans["wait"].size() == steps + 1);
  CHECK(!spans["load"].empty());
  REQUIRE(timeline.dispatches.size() == trainer.inspect().summary().dispatches);
  const double slack = timeline.clock_error + 1;
  const double seen = spans["wait"].back().time.end + slack;
  for (const DispatchCost& cost : timeline.dispatches) REQUIRE(cost.runs.size() == steps);
  for (std::size_t i = 0; i < steps; ++i) {
    CHECK(timeline.dispatches.front().runs[i].begin >= spans["submit"][i].time.begin - slack);
    for (std::size_t j = 1; j < timeline.dispatches.size(); ++j) {
      CHECK(timeline.dispatches[j].runs[i].begin >= timeline.dispatches[j - 1].runs[i].begin);
    }
    CHECK(timeline.dispatches.back().runs[i].end <= seen);
    if (i > 0) CHECK(timeline.dispatches.front().runs[i].begin >= timeline.dispatches.back().runs[i - 1].end - 1);
  }
}

TEST_CASE("a timeline ends after a step where it is told to") {
  const Dataset set = testing::toy_dataset(64, {6, 5, 1}, 3);
  Trainer trainer = testing::toy_trainer(set, {});
  int asked = 0;
  const Timeline timeline = trainer.inspect().timeline(8, [&] { return ++asked == 3; });
  CHECK(asked == 3);
  for (const DispatchCost& cost : timeline.dispatches) CHECK(cost.runs.size() == 3);
  CHECK(timeline.host.back().step == 2);
  trainer.finish();
  CHECK(trainer.report().step == 3);
}

TEST_CASE("a planned step has its phases in order, and says who wrote what it reads") {
  const Dataset set = testing::toy_dataset(64, {6, 5, 1}, 3);
  Trainer trainer = testing::toy_trainer(set, {});
  const PlannedStep step = trainer.inspect().planned();
  REQUIRE(step.dispatches.size() == trainer.inspect().summary().dispatches);
  std::vector<std::string> phases;
  bool fused = false;
  for (std::size_t i = 0; i < step.dispatches.size(); ++i) {
    const PlannedDispatch& dispatch = step.dispatches[i];
    CAPTURE(dispatch.label);
    if (phases.empty() || phases.back() != dispatch.phase) phases.push_back(dispatch.phase);
    fused = fused || dispatch.label.find(" + ") != std::string::npos;
    CHECK(!dispatch.writes.empty());
    for (const PlannedDispatch::Read& read : dispatch.reads) {
      CHECK(read.from < static_cast<std::ptrdiff_t>(i));
      const PlannedTensor& tensor = step.tensors.at(read.tensor);
      if (tensor.buffer == "arena") REQUIRE(read.from >= 0);  // nothing else is there
      if (read.from < 0 || tensor.buffer != "arena") continue;
      const std::vector<std::size_t>& written = step.dispatches[static_cast<std::size_t>(read.from)].writes;
      CHECK(std::ranges::count(written, read.tensor) == 1);
    }
  }
  CHECK(phases == std::vector<std::string>{"feed", "forward", "backward", "update"});
  CHECK(fused);
  const auto update = std::ranges::find(step.dispatches, "check", &PlannedDispatch::label);
  REQUIRE(update != step.dispatches.end());
  const auto reads_gradients = [&](const PlannedDispatch::Read& read) {
    return step.tensors[read.tensor].buffer == "gradients" &&
           step.dispatches[static_cast<std::size_t>(read.from)].phase == "backward";
  };
  CHECK(std::ranges::any_of(update->reads, reads_gradients));
}

}  // namespace halfstep
