// What devices do: each call of Vulkan that a training makes fails once, with each error that Vulkan allows it.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "harness/application.h"
#include "harness/device.h"
#include "harness/faults.h"
#include "host/temporary_folder.h"
#include "train/small_training.h"
#include "vk/device/result.h"

namespace halfstep {
namespace {

using testing::Fault;
using testing::FaultyVulkan;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A training whose every call of Vulkan is to fail once.
class Training {
 public:
  using Open = std::function<Device(const DeviceSettings&)>;
  using Beside = std::function<void(const Device&)>;

  /// `beside` is what else is done on the device, before the training.
  Training(const TemporaryFolder& folder, Open open, Beside beside = {})
      : folder_(folder),
        open_(std::move(open)),
        beside_(std::move(beside)),
        data_(testing::toy_dataset(16, {6, 5, 1}, 3)),
        checkpoint_(folder.path() / "checkpoint") {}

  Device open() const { return open_({.tuning = Tuning::off, .cache_folder = folder_.path(), .may_fork = false}); }

  /// Trains from the beginning; returns the weights.
  std::vector<float> run() const {
    const Device device = open();
    if (beside_) beside_(device);
    Trainer trainer = testing::toy_trainer(data_, {.resident_limit = 1, .device = device});
    try {
      for (int step = 0; step < 3; ++step) trainer.step();
      trainer.evaluate(data_);
      trainer.save(checkpoint_);
      return testing::toy_weights(trainer);
    } catch (const Error&) {
      goes_on(trainer);
      throw;
    }
  }

  const std::filesystem::path& checkpoint() const { return checkpoint_; }

 private:
  /// A trainer that has failed may fail again, but that is all.
  static void goes_on(Trainer& trainer) {
    try {
      trainer.step();
      trainer.finish();
    } catch (const Error&) {
    }
  }

  const TemporaryFolder& folder_;
  Open open_;
  Beside beside_;
  Dataset data_;
  std::filesystem::path checkpoint_;
};

Device open_device(const DeviceSettings& settings) {
  return Device::open(testing::device().info().name, settings);
}

/// Which calls of so many fail: all, or of many the first ones and then one after twice as many.
std::vector<std::size_t> calls_to_fail(std::size_t count) {
  std::vector<std::size_t> calls;
  for (std::size_t call = 1; call <= count; call += testing::every_variant() || call < 3 ? 1 : call) {
    calls.push_back(call);
  }
  if (calls.back() != count) calls.push_back(count);
  return calls;
}

/// The faults of a function that is called so often: each of the calls to fail with each error, or, where all are for
/// lack of memory and handled alike, with one of them in turns.
std::vector<Fault> faults_of(const std::string& function, std::size_t count) {
  const std::span<const VkResult> errors = testing::errors_of(function);
  const std::vector<std::size_t> calls = calls_to_fail(count);
  const bool in_turns = errors.size() == 2 && calls.size() >= errors.size() && !testing::every_variant();
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (std::size_t e = 0; e < errors.size(); ++e) {
      if (!in_turns || i % errors.size() == e) faults.push_back({function, calls[i], errors[e]});
    }
  }
  return faults;
}

ErrorCode code_for(VkResult result) {
  try {
    vk::check(result, "call");
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::system;
}

/// Whether how often a function is called depends on how fast the device is: a submit that has finished gives its fence
/// to the next one.
bool waits(std::string_view function) {
  return function == "vkWaitForFences" || function == "vkGetFenceStatus" || function == "vkCreateFence";
}

/// One fault after another, and what came of them.
class Faults {
 public:
  explicit Faults(Training::Open open, Training::Beside beside = {})
      : training_(folder_, std::move(open), std::move(beside)),
        weights_(train(std::nullopt)),
        whole_(contents(training_.checkpoint())) {}

  /// Lets each call of each function that may fail do so with each error that it may return; `after` follows each.
  void inject_all(const std::function<void()>& after) {
    train(std::nullopt);
    for (const auto& [function, count] : vulkan_.calls()) {
      for (const Fault& fault : faults_of(function, count)) {
        const std::string about = fmt::format("{} {} {}", function, fault.call, vk::name(fault.result));
        CAPTURE(about);
        inject(fault);
        after();
      }
    }
    MESSAGE(fmt::format("{} faults survived, {} of them without an error", injected_, unnoticed_));
  }

  std::size_t calls_of(const std::string& function) const {
    const auto calls = vulkan_.calls();
    const auto found = calls.find(function);
    return found == calls.end() ? 0 : found->second;
  }
  /// No fault from now on.
  void end() { vulkan_.plan(std::nullopt); }

 private:
  std::vector<float> train(const std::optional<Fault>& fault) {
    vulkan_.plan(fault);
    return training_.run();
  }

  void inject(const Fault& fault) {
    std::filesystem::remove(training_.checkpoint());
    try {
      const std::vector<float> weights = train(fault);
      CHECK(weights == weights_);  // where there is another way
      CHECK(contents(training_.checkpoint()) == whole_);
      if (vulkan_.happened()) ++unnoticed_;
    } catch (const Error& error) {
      CAPTURE(error.what());
      CHECK(vulkan_.happened());
      CHECK(fault.result != VK_TIMEOUT);  // one waits on
      CHECK(error.code() == code_for(fault.result));
      CHECK_MESSAGE(std::string(error.what()).find(vk::name(fault.result)) != std::string::npos, error.what());
      const std::string left = contents(training_.checkpoint());
      CHECK((left.empty() || left == whole_));
    }
    CHECK((vulkan_.happened() || waits(fault.function)));
    if (vulkan_.happened()) ++injected_;
    CHECK(vulkan_.misuse() == std::vector<std::string>{});
    CHECK(vulkan_.living() == std::vector<std::string>{});
  }

  TemporaryFolder folder_;
  FaultyVulkan vulkan_;
  Training training_;
  std::vector<float> weights_;
  std::string whole_;
  std::size_t injected_ = 0;
  std::size_t unnoticed_ = 0;
};

}  // namespace

TEST_CASE("every call of Vulkan may fail: a clear error, nothing left behind, nothing half written") {
  Faults(open_device).inject_all([] {});
}

TEST_CASE("every call on an application's device may fail: its own objects are as they were") {
  testing::Application application;
  testing::ApplicationBuffer buffer(application, 4096);
  const testing::Semaphore timeline(application, application.has_timelines());
  std::uint64_t signalled = 0;
  const auto open = [&](const DeviceSettings& settings) {
    AdoptedDevice handles = application.handles();
    handles.get_instance_proc_addr = reinterpret_cast<void (*)()>(FaultyVulkan::entry());
    return Device::adopt(handles, settings);
  };
  Faults faults(open, [&](const Device& device) {
    Graph graph;
    const DeviceBuffer input{
        .memory = testing::number(buffer.memory()), .memory_type = buffer.memory_type(), .bytes = 64};
    const DeviceBuffer output{.buffer = testing::number(buffer.handle()), .offset = 1024, .bytes = 64};
    Predictor predictor = Predictor::compile(device, graph, relu(graph.input("x", {4, 4})), Precision::float32(),
                                             {.inputs = {{"x", input}}, .output = output});
    predictor.submit();
    if (!application.has_timelines()) return;
    const QueueSemaphore next[] = {timeline.at(++signalled)};
    device.signal(next);
    device.wait_for(next);
  });
  faults.inject_all([&] {
    CHECK(faults.calls_of("vkDestroyDevice") + faults.calls_of("vkDestroyInstance") == 0);
    CHECK(application.locks == application.unlocks);
    faults.end();
    CHECK(application.works());
  });
}

TEST_CASE("a driver without a function that is needed: a clear error, nothing left behind") {
  const TemporaryFolder folder;
  const Training training(folder, open_device);
  FaultyVulkan vulkan;
  for (const char* function : {"vkAllocateMemory", "vkWaitForFences"}) {
    CAPTURE(function);
    vulkan.plan(std::nullopt);
    vulkan.hide(function);
    CHECK_THROWS_WITH_AS(training.open(), doctest::Contains(function), Error);
    CHECK(vulkan.living() == std::vector<std::string>{});
  }
}

}  // namespace halfstep
