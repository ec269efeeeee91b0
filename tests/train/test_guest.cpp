// An application's memory as tensors, and its command buffers.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/application.h"
#include "harness/device.h"
#include "train/guest_model.h"
#include "train/rank_threads.h"

using namespace halfstep;
using namespace halfstep::testing::guest;
using testing::Application;
using testing::ApplicationBuffer;
using testing::Commands;
using testing::number;

namespace {

/// A batch of rows of three at the start of the memory, and its labels at word 128.
std::map<std::string, DeviceBuffer> rows_and_labels(const ApplicationBuffer& memory) {
  const std::uint64_t buffer = number(memory.handle());
  return {{"x", {.buffer = buffer, .bytes = 4 * batch * 3}},
          {"y", {.buffer = buffer, .offset = 512, .bytes = 4 * batch}}};
}

/// Whether steps of a trainer with these options cannot be recorded, and an Error says why.
void check_not_recorded(const Device& device, const TrainerOptions& options, Commands& commands, const char* why) {
  Model model(3);
  Trainer trainer = model.trainer(device, options);
  CHECK_THROWS_WITH_AS(trainer.record(commands.handle()), doctest::Contains(why), Error);
}

}  // namespace

TEST_CASE("guest: steps read inputs from an application's memory, to the bits of steps that are given values") {
  Application application;
  const Device device = Device::adopt(application.handles());
  for (const auto& [columns, precision, offset, times] : {std::tuple(std::int64_t{3}, Precision::mixed(), 5, 2),
                                                          std::tuple(std::int64_t{4}, Precision::float32(), 64, 1)}) {
    CAPTURE(columns);
    const auto first = static_cast<std::size_t>(offset);
    const std::vector<float> x = rows(batch * times, columns, 3);
    const std::vector<std::uint32_t> y = labels(batch * times);
    ApplicationBuffer memory(application, 4096);
    put(memory.floats(), first, x);
    put(memory.floats(), 512, y);
    TrainerOptions options;
    options.precision = precision;
    options.accumulate = times;
    Model given(columns), shared(columns);
    Trainer by_values = given.trainer(device, options);
    options.shared_inputs = {{"x", {.buffer = number(memory.handle()), .offset = 4 * first, .bytes = 4 * x.size()}},
                             {"y", {.buffer = number(memory.handle()), .offset = 2048, .bytes = 4 * y.size()}}};
    Trainer trainer = shared.trainer(device, options);
    for (int i = 0; i < 3; ++i) {
      by_values.step({{"x", std::span(x)}, {"y", std::span(y)}});
      trainer.step();
    }
    CHECK(weights(trainer) == weights(by_values));
    CHECK(trainer.report().loss == by_values.report().loss);
    while (!trainer.run_for(std::chrono::microseconds(1))) {
    }
    by_values.step({{"x", std::span(x)}, {"y", std::span(y)}});
    CHECK(weights(trainer) == weights(by_values));
    CHECK(trainer.report().step == 4);
  }
}

TEST_CASE("guest: a predictor reads and writes an application's memory, and nothing beside it") {
  Application application;
  const Device device = Device::adopt(application.handles());
  ApplicationBuffer memory(application, 4096);
  const std::vector<float> x = rows(batch, 3, 5);
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    std::ranges::fill(memory.floats(), -7.0F);
    put(memory.floats(), 3, x);
    Model model(3), same(3);
    TrainerOptions options;
    options.precision = precision;
    Trainer trainer = model.trainer(device, options);
    const std::uint64_t buffer = number(memory.handle());
    const SharedBuffers shared{.inputs = {{"x", {.buffer = buffer, .offset = 12, .bytes = 4 * x.size()}}},
                               .output = DeviceBuffer{.buffer = buffer, .offset = 404, .bytes = 4 * batch * 5}};
    Predictor predictor = Predictor::compile(trainer, same.graph, same.logits, shared);
    const std::vector<float> expected = Predictor::compile(trainer, same.graph, same.logits).run({{"x", std::span(x)}});
    for (int i = 0; i < 3; ++i) predictor.submit();
    CHECK(predictor.run({}).empty());
    const std::span<float> all = memory.floats();
    CHECK(std::ranges::equal(all.subspan(101, batch * 5), expected));
    CHECK(std::ranges::all_of(all.subspan(101 + batch * 5), [](float v) { return v == -7.0F; }));
    CHECK(std::ranges::all_of(all.subspan(3 + x.size(), 98 - x.size()), [](float v) { return v == -7.0F; }));
  }
}

TEST_CASE("guest: an application's VkDeviceMemory is used without a buffer of its own") {
  Application application;
  const Device device = Device::adopt(application.handles());
  ApplicationBuffer memory(application, 4096);
  Model model(4);
  Trainer trainer = model.trainer(device, {});
  const auto range = [&](std::uint64_t offset, std::uint64_t bytes) {
    return DeviceBuffer{
        .memory = number(memory.memory()), .memory_type = memory.memory_type(), .offset = offset, .bytes = bytes};
  };
  const std::vector<float> x = rows(batch, 4, 6);
  put(memory.floats(), 256, x);
  Predictor predictor = Predictor::compile(trainer, model.graph, model.logits,
                                           {.inputs = {{"x", range(1024, 4 * x.size())}}, .output = range(2048, 512)});
  predictor.run({});
  const auto expected = Predictor::compile(trainer, model.graph, model.logits).run({{"x", std::span(x)}});
  CHECK(std::ranges::equal(memory.floats().subspan(512, expected.size()), expected));
  DeviceBuffer wrong = range(2049 * 4, 512);
  wrong.memory_type = 31;
  CHECK_THROWS_AS(Predictor::compile(trainer, model.graph, model.logits, {.inputs = {}, .output = wrong}), Error);
}

TEST_CASE("guest: an application's command buffer trains and predicts each time that it is submitted") {
  Application application;
  const Device device = Device::adopt(application.handles());
  ApplicationBuffer memory(application, 4096);
  const std::vector<float> x = rows(batch, 3, 8);
  const std::vector<std::uint32_t> y = labels(batch);
  put(memory.floats(), 0, x);
  put(memory.floats(), 128, y);
  const std::uint64_t buffer = number(memory.handle());
  const DeviceBuffer x_memory{.buffer = buffer, .bytes = 4 * x.size()};
  TrainerOptions options;
  options.shared_inputs = {{"x", x_memory}, {"y", {.buffer = buffer, .offset = 512, .bytes = 4 * y.size()}}};
  Model own(3), beside(3), predicted(3);
  Trainer steps = beside.trainer(device, options);
  Trainer trainer = own.trainer(device, options);
  Predictor predictor = Predictor::compile(
      trainer, predicted.graph, predicted.logits,
      {.inputs = {{"x", x_memory}}, .output = DeviceBuffer{.buffer = buffer, .offset = 1024, .bytes = 4 * batch * 5}});
  Commands commands(application);
  trainer.record(commands.handle());
  predictor.record(commands.handle());
  commands.end();
  CHECK_THROWS_WITH_AS(trainer.executed(), doctest::Contains("a recorded run that was executed, got none"), Error);
  for (int i = 0; i < 3; ++i) {
    commands.run();
    trainer.executed();
    steps.step();
  }
  steps.finish();
  CHECK(trainer.report().loss == steps.report().loss);
  trainer.step();  // both ways, in turns
  steps.step();
  commands.run();
  trainer.executed();
  steps.step();
  CHECK(weights(trainer) == weights(steps));
  CHECK(trainer.report().step == 5);
  const auto expected = Predictor::compile(steps, predicted.graph, predicted.logits).run({{"x", std::span(x)}});
  CHECK(std::ranges::equal(memory.floats().subspan(256, expected.size()), expected));
  // A prediction does not disturb a step that is open.
  Commands frame(application);
  predictor.record(frame.handle());
  frame.end();
  while (!trainer.run_for(std::chrono::microseconds(1))) frame.run();
  steps.step();
  CHECK(weights(trainer) == weights(steps));
}

TEST_CASE("guest: each execution of a recorded step has a report, also where others have run since") {
  Application application;
  const Device device = Device::adopt(application.handles());
  ApplicationBuffer memory(application, 4096);
  put(memory.floats(), 128, labels(batch));
  TrainerOptions options;
  options.shared_inputs = rows_and_labels(memory);
  Model own(3), beside(3);
  Trainer steps = beside.trainer(device, options);
  Trainer trainer = own.trainer(device, options);
  Commands commands(application);
  trainer.record(commands.handle());
  commands.end();
  std::vector<float> losses;
  const auto execute = [&](int times) {
    for (int i = 0; i < times; ++i) {
      put(memory.floats(), 0, rows(batch, 3, static_cast<std::uint32_t>(20 + losses.size())));
      commands.run();
      steps.step();
      steps.finish();
      losses.push_back(steps.report().loss);
    }
  };
  std::size_t read = 0;
  const auto check_reports = [&] {
    for (; read < losses.size(); ++read) {
      trainer.executed();
      CHECK(trainer.report().loss == losses[read]);
      CHECK(trainer.report().step == read + 1);
    }
    CHECK_THROWS_WITH_AS(trainer.executed(), doctest::Contains("expected a recorded run that was executed"), Error);
  };
  execute(15);
  check_reports();
  execute(4);
  check_reports();
  CHECK(trainer.take_totals().mean_loss == doctest::Approx(steps.take_totals().mean_loss));
  execute(18);
  for (; read < 22; ++read) {
    CHECK_THROWS_WITH_AS(trainer.executed(), doctest::Contains("expected at most 15 executions"), Error);
  }
  check_reports();
  CHECK(weights(trainer) == weights(steps));
}

TEST_CASE("guest: a trainer that goes on with its device records its steps anew") {
  Application application;
  const Device device = Device::adopt(application.handles());
  ApplicationBuffer memory(application, 4096);
  put(memory.floats(), 0, rows(batch, 3, 8));
  put(memory.floats(), 128, labels(batch));
  TrainerOptions options;
  options.shared_inputs = rows_and_labels(memory);
  Model own(3), beside(3);
  Trainer whole = beside.trainer(device, options);
  Trainer trainer = own.trainer(device, options);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    Commands commands(application);
    trainer.record(commands.handle());
    commands.end();
    commands.run();
    trainer.executed();
    whole.step();
    CHECK(trainer.report().step == step);
    CHECK(weights(trainer) == weights(whole));
    CHECK(trainer.reopen(device, options.shared_inputs).step == step);
    CHECK_THROWS_WITH_AS(trainer.executed(), doctest::Contains("expected a run that was recorded, got none"), Error);
  }
}

TEST_CASE("guest: steps on shared memory are checkpointed, stopped and go on with another device") {
  Application application, other;
  ApplicationBuffer memory(application, 4096), there(other, 4096);
  const Device device = Device::adopt(application.handles());
  const std::vector<float> x = rows(batch, 3, 9);
  const std::vector<std::uint32_t> y = labels(batch);
  const auto inputs = [&](ApplicationBuffer& where) {
    put(where.floats(), 0, x);
    put(where.floats(), 128, y);
    return rows_and_labels(where);
  };
  Model whole(3), first(3), second(3);
  TrainerOptions options;
  options.shared_inputs = inputs(memory);
  Trainer uninterrupted = whole.trainer(device, options);
  for (int i = 0; i < 6; ++i) uninterrupted.step();
  options.snapshot_every = 2;
  Trainer trainer = first.trainer(device, options);
  for (int i = 0; i < 2; ++i) trainer.step();
  Trainer resumed = second.trainer(device, options);
  CHECK(resumed.load(trainer.checkpoint()).step == 2);
  const Device replaced = Device::adopt(other.handles());
  CHECK_THROWS_WITH_AS(trainer.reopen(replaced), doctest::Contains("for the shared inputs [x, y], got some for []"),
                       Error);
  CHECK(trainer.reopen(replaced, inputs(there)).step == 2);
  for (int i = 0; i < 4; ++i) {
    trainer.step();
    resumed.step();
  }
  CHECK(weights(trainer) == weights(uninterrupted));
  CHECK(weights(resumed) == weights(uninterrupted));
  // A step that stops changes nothing.
  options.precision = Precision::float32();
  options.precision.stop_on.invalid = true;
  options.snapshot_every = 0;
  Model stopping(3);
  Trainer stops = stopping.trainer(device, options);
  stops.step();
  const std::vector<float> before = weights(stops);
  memory.floats()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(stops.step(), Error);
  CHECK(weights(stops) == before);
  memory.floats()[0] = x[0];
  stops.step();
  CHECK(stops.report().step == 2);
  CHECK_THROWS_WITH_AS(stops.evaluate(Dataset{}), doctest::Contains("expected a trainer with a feed"), Error);
}

TEST_CASE("guest: each rank reads its own memory") {
  Application application;
  ApplicationBuffer memory(application, 4096);
  const Device device = Device::adopt(application.handles());
  put(memory.floats(), 0, rows(batch, 3, 9));
  put(memory.floats(), 128, labels(batch));
  TrainerOptions options;
  options.shared_inputs = rows_and_labels(memory);
  Model alone(3), among(3);
  Trainer one = alone.trainer(device, options);
  options.ranks.exchange = std::make_shared<testing::Mirror>();
  Trainer two = among.trainer(device, options);
  for (int i = 0; i < 3; ++i) {
    one.step();
    two.step();
  }
  CHECK(weights(two) == weights(one));
  Commands commands(application);
  CHECK_THROWS_WITH_AS(two.record(commands.handle()), doctest::Contains("expected one rank to record"), Error);
  commands.end();
}

TEST_CASE("guest: what cannot be shared is refused") {
  Application application;
  AdoptedDevice handles = application.handles();
  handles.timeline_semaphore = false;
  const Device device = Device::adopt(handles);
  ApplicationBuffer memory(application, 4096);
  const std::uint64_t buffer = number(memory.handle());
  Model model(3);
  Trainer trainer = model.trainer(device, {});
  const auto sharing = [&](const DeviceBuffer& range) {
    Predictor::compile(trainer, model.graph, model.logits, {.inputs = {{"x", range}}, .output = {}});
  };
  CHECK_THROWS_WITH_AS(sharing({.buffer = buffer, .bytes = 68}),
                       doctest::Contains("expected 72 bytes for 'x' f32 {6, 3}, got 68"), Error);
  CHECK_THROWS_WITH_AS(sharing({.buffer = buffer, .offset = 2, .bytes = 72}), doctest::Contains("multiple of 4"),
                       Error);
  constexpr std::uint32_t transfers = 3;  // VK_BUFFER_USAGE_TRANSFER_*_BIT
  CHECK_THROWS_WITH_AS(sharing({.buffer = buffer, .bytes = 72, .usage = transfers}),
                       doctest::Contains("with VK_BUFFER_USAGE_STORAGE_BUFFER_BIT for 'x', got one of usage 0x3"),
                       Error);
  CHECK_THROWS_WITH_AS(sharing({.buffer = buffer, .offset = 1 << 20, .bytes = 72}),
                       doctest::Contains("to lie in its buffer"), Error);
  CHECK_THROWS_WITH_AS(sharing({.buffer = buffer, .offset = ~std::uint64_t{3}, .bytes = 72}),
                       doctest::Contains("to lie in its buffer"), Error);
  sharing({.buffer = buffer, .offset = 4096 - 72, .bytes = std::uint64_t{1} << 40, .usage = 0x20});
  CHECK_THROWS_WITH_AS(sharing({.bytes = 72}), doctest::Contains("expected a buffer or memory for 'x', got none"),
                       Error);
  CHECK_THROWS_WITH_AS(Predictor::compile(trainer, model.graph, model.logits,
                                          {.inputs = {{"z", {.buffer = buffer, .bytes = 72}}}, .output = {}}),
                       doctest::Contains("some for 'z'"), Error);
  Commands commands(application);
  CHECK_THROWS_WITH_AS(trainer.record(commands.handle()), doctest::Contains("inputs are all shared"), Error);
  CHECK_THROWS_WITH_AS(trainer.record(nullptr), doctest::Contains("got null"), Error);
  CHECK_THROWS_WITH_AS(trainer.executed(), doctest::Contains("expected a run that was recorded"), Error);
  Predictor plain = Predictor::compile(trainer, model.graph, model.logits);
  CHECK_THROWS_WITH_AS(plain.record(commands.handle()), doctest::Contains("in shared memory"), Error);
  CHECK_THROWS_WITH_AS(plain.submit(), doctest::Contains("in shared memory"), Error);
  const QueueSemaphore timeline[] = {{1, 1}}, none[] = {{}};
  CHECK_THROWS_WITH_AS(device.signal(timeline), doctest::Contains("expected a binary semaphore"), Error);
  CHECK_THROWS_WITH_AS(device.wait_for(none), doctest::Contains("got null"), Error);
  const Device own = Device::open();
  CHECK_THROWS_WITH_AS(own.wait_for(timeline), doctest::Contains("expected an adopted device"), Error);
  CHECK_THROWS_WITH_AS(own.wait_for({}), doctest::Contains("expected an adopted device"), Error);
  CHECK_THROWS_WITH_AS(own.signal({}), doctest::Contains("expected an adopted device"), Error);
  TrainerOptions options;
  options.shared_inputs = {{"x", {.buffer = buffer, .bytes = 72}}, {"y", {.buffer = buffer, .bytes = 24}}};
  CHECK_THROWS_WITH_AS(Model(3).trainer(Device::open(), options),
                       doctest::Contains("expected an adopted device for x (the application's), got one of its own"),
                       Error);
  options.snapshot_every = 1;
  check_not_recorded(device, options, commands, "without snapshot_every");
  options.snapshot_every = 0;
  options.trace = "*";
  check_not_recorded(device, options, commands, "without trace");
  options.precision = Precision::float32();
  options.precision.stop_on.overflow = true;
  check_not_recorded(device, options, commands, "without Precision::stop_on");
  commands.end();
}
