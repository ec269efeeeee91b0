// A trainer whose device was lost goes on with another one.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <limits>

#include "harness/device.h"
#include "harness/faults.h"
#include "train/small_training.h"
#include "vk/device/settings.h"

namespace halfstep {
namespace {

using testing::FaultyVulkan;

Device open_again() {
  return Device::open(testing::device().info().name, {.tuning = Tuning::off, .may_fork = false});
}

testing::ToyOptions options_of(const Precision& precision, std::int64_t every, const Device& device) {
  return {.precision = precision,
          .resident_limit = 1,
          .dropout = 0.2F,
          .device = device,
          .change = [every](TrainerOptions& options) {
            options.snapshot_every = every;
            options.ema_decay = 0.9F;
            options.clip_norm = 1;
          }};
}

/// Bytes that this process has on its heap; 0 where the C library does not say.
double heap_bytes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
#else
  return 0;
#endif
}

/// Bytes by which the heap grows while a device is opened and closed that often: a GPU's driver keeps some of each.
double kept_by_driver(int times) {
  const double before = heap_bytes();
  for (int i = 0; i < times; ++i) static_cast<void>(Device::open());
  return heap_bytes() - before;
}

void train(Trainer& trainer, int steps) {
  for (int step = 0; step < steps; ++step) trainer.step();
}

/// Trains for so many steps, or until the device is lost.
void train_until_lost(Trainer& trainer, int steps) {
  try {
    train(trainer, steps);
    trainer.finish();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::device_lost);
  }
}

std::vector<float> averages(Trainer& trainer) {
  return trainer.parameter("dense/weight", Weights::averaged);
}

}  // namespace

TEST_CASE("a training goes on from the last snapshot after its device was lost, bit for bit") {
  constexpr int steps = 12;
  const Dataset data = testing::toy_dataset(40, {6, 5, 1}, 3);
  for (const Precision& precision : {Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    Trainer whole = testing::toy_trainer(data, options_of(precision, 0, open_again()));
    train(whole, steps);
    const std::vector<float> weights = testing::toy_weights(whole);
    const StepReport last = whole.report();
    for (const int before : {1, 2, 3, 6, 8}) {  // with the next step, or the snapshot before it, the device is lost
      CAPTURE(before);
      FaultyVulkan vulkan;
      Trainer trainer = testing::toy_trainer(data, options_of(precision, 3, open_again()));
      train(trainer, before);
      CHECK_THROWS_AS(trainer.load_weights("/nowhere"), Error);  // which changes nothing
      vulkan.plan(testing::Fault{"vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST});
      train_until_lost(trainer, steps);
      CHECK(vulkan.happened());
      CHECK_THROWS_WITH_AS(trainer.step(), doctest::Contains("VK_ERROR_DEVICE_LOST"), Error);
      const ResumePoint point = trainer.reopen(open_again());
      CHECK(point.step == static_cast<std::uint64_t>((before - 1) / 3 * 3));
      CHECK(point.epoch == static_cast<std::int64_t>(point.step) / 5);
      train(trainer, steps - static_cast<int>(point.step));
      CHECK(testing::toy_weights(trainer) == weights);
      CHECK(averages(trainer) == averages(whole));
      CHECK(trainer.report().step == last.step);
      CHECK(trainer.report().loss == last.loss);
      CHECK(trainer.evaluate(data).loss == whole.evaluate(data).loss);
    }
  }
}

TEST_CASE("a training moves to another device from where it is") {
  const Dataset data = testing::toy_dataset(40, {6, 5, 1}, 3);
  Trainer whole = testing::toy_trainer(data, options_of(Precision::mixed(), 0, testing::device()));
  Trainer trainer = testing::toy_trainer(data, options_of(Precision::mixed(), 0, testing::device()));
  train(whole, 12);
  train(trainer, 7);
  trainer.run_for(std::chrono::milliseconds(1));  // may leave a step open, which then ends
  const ResumePoint point = trainer.reopen(testing::device());
  CHECK(point.step == 8);
  CHECK(point.epoch == 1);
  CHECK(point.epoch_step == 3);
  train(trainer, 4);
  CHECK(testing::toy_weights(trainer) == testing::toy_weights(whole));
  for (const DeviceInfo& info : Device::list()) {
    if (!info.usable) continue;
    CAPTURE(info.name);
    CHECK(trainer.reopen(Device::open(std::to_string(info.index))).step == 12);
    CHECK(trainer.evaluate(data).loss == doctest::Approx(whole.evaluate(data).loss).epsilon(0.01));
  }
}

TEST_CASE("a training whose open step is stopped moves from where it is, not from its snapshot") {
  Source source{.name = "rows",
                .fields = {{.name = "x", .type = ElementType::f32, .shape = {8}}},
                .fill = [](const SourceBatch& to) {
                  const float value = to.number < 3 ? 1.0F : std::numeric_limits<float>::infinity();
                  std::ranges::fill(to.values<float>(0), value);
                }};
  Graph graph;
  const Tensor x = graph.input("x", {4, 8});
  const Tensor w = graph.root().parameter("w", {4, 8}, constant(1));
  Precision precision = Precision::float32();
  precision.stop_on = {.overflow = true, .invalid = true};
  Trainer trainer = Trainer::compile(testing::device(), graph,
                                     {.loss = sum(mul(w, x)),
                                      .optimizer = Sgd{.rate = 0.25F},
                                      .precision = precision,
                                      .feed = Feed{.inputs = {{.input = x}}},
                                      .source = &source,
                                      .snapshot_every = 100});
  train(trainer, 3);
  REQUIRE(!trainer.run_for(std::chrono::nanoseconds(1)));
  CHECK(trainer.reopen(testing::device()).step == 3);
  CHECK(trainer.parameter("w") == std::vector<float>(32, 0.25F));
}

TEST_CASE("a checkpoint in memory is one in a file") {
  const Dataset data = testing::toy_dataset(40, {6, 5, 1}, 3);
  Trainer trainer = testing::toy_trainer(data, options_of(Precision::float16(), 0, testing::device()));
  train(trainer, 4);
  const Checkpoint checkpoint = trainer.checkpoint();
  train(trainer, 3);
  const std::vector<float> weights = testing::toy_weights(trainer);
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(trainer.load(checkpoint).step == 4);
    train(trainer, 3);
    CHECK(testing::toy_weights(trainer) == weights);
  }
  testing::Pull other(4, 1.0F, Sgd{}, Precision::float32());
  CHECK_THROWS_WITH_AS(other.trainer().load(checkpoint), doctest::Contains("the checkpoint"), Error);
}

TEST_CASE("without a snapshot a lost training cannot go on, and says so") {
  const Dataset data = testing::toy_dataset(40, {6, 5, 1}, 3);
  for (const std::int64_t every : {0, 2}) {
    CAPTURE(every);
    FaultyVulkan vulkan;
    Trainer trainer = testing::toy_trainer(data, options_of(Precision::mixed(), every, open_again()));
    train(trainer, 3);
    // Going back to before this would be another training.
    if (every != 0) trainer.set_parameter("dense/bias", std::vector{1.0F, 2.0F, 3.0F});
    vulkan.plan(testing::Fault{"vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST});
    train_until_lost(trainer, 3);
    const Device device = testing::device();
    CHECK_THROWS_WITH_AS(trainer.reopen(device), doctest::Contains("VK_ERROR_DEVICE_LOST"), Error);
  }
  CHECK_THROWS_WITH_AS(testing::toy_trainer(data, options_of(Precision::mixed(), -1, testing::device())),
                       doctest::Contains("snapshots"), Error);
}

TEST_CASE("a trainer whose new device fails has none, until one works") {
  const Dataset data = testing::toy_dataset(40, {6, 5, 1}, 3);
  Trainer whole = testing::toy_trainer(data, options_of(Precision::mixed(), 0, testing::device()));
  train(whole, 6);
  Trainer trainer = testing::toy_trainer(data, options_of(Precision::mixed(), 0, testing::device()));
  train(trainer, 4);
  {
    FaultyVulkan vulkan;
    const Device device = open_again();
    vulkan.plan(testing::Fault{"vkCreateCommandPool", 2, VK_ERROR_OUT_OF_HOST_MEMORY});
    CHECK_THROWS_WITH_AS(trainer.reopen(device), doctest::Contains("VK_ERROR_OUT_OF_HOST_MEMORY"), Error);
  }
  CHECK_THROWS_WITH_AS(trainer.step(), doctest::Contains("could not be reopened"), Error);
  CHECK_THROWS_WITH_AS(trainer.parameter("dense/bias"), doctest::Contains("could not be reopened"), Error);
  CHECK_THROWS_WITH_AS(trainer.inspect(), doctest::Contains("could not be reopened"), Error);
  CHECK(trainer.reopen(testing::device()).step == 4);
  train(trainer, 2);
  CHECK(testing::toy_weights(trainer) == testing::toy_weights(whole));
}

TEST_CASE("reopening again and again leaves nothing behind") {
  const int turns = testing::every_variant() ? 1000 : 40;
  const Dataset data = testing::toy_dataset(40, {6, 5, 1}, 3);
  FaultyVulkan vulkan;
  Trainer trainer = testing::toy_trainer(data, options_of(Precision::mixed(), 2, open_again()));
  std::size_t objects = 0;
  double bytes = 0;
  for (int turn = 0; turn < turns; ++turn) {
    train(trainer, 3);
    vulkan.plan(testing::Fault{"vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST});
    train_until_lost(trainer, 1);
    const ResumePoint point = trainer.reopen(open_again());
    CHECK(point.step == static_cast<std::uint64_t>(2 * turn + 2));
    if (turn == 9) {
      objects = vulkan.living().size();
      bytes = heap_bytes();
    }
  }
  CHECK(vulkan.living().size() == objects);
  const double growth = heap_bytes() - bytes;
  const double kept = testing::context().target().cpu ? 0 : kept_by_driver(turns - 10);
  if (!vk::settings({}).validation) CHECK(growth < kept + (1 << 20));  // the layer keeps 0.2 MB of each device
  MESSAGE(fmt::format("{} reopenings; after the tenth, the heap grew by {:.0f} bytes", turns, growth));
}

}  // namespace halfstep
