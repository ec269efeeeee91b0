// What several threads may do at once with one device; run under the thread sanitizer too (the preset tsan).
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/application.h"
#include "harness/device.h"
#include "train/small_training.h"

using namespace halfstep;

namespace {

struct Result {
  std::vector<float> weights;
  double loss = 0;

  friend bool operator==(const Result&, const Result&) = default;
};

/// Compiles, trains with a part of each step at a time, evaluates, predicts.
Result trained(const Device& device, const Dataset& set, std::uint64_t seed) {
  Trainer trainer =
      testing::toy_trainer(set, {.precision = Precision::mixed(), .seed = seed, .dropout = 0.25F, .device = device});
  for (int step = 0; step < 6; ++step) trainer.step();
  for (int ended = 0; ended < 4;) ended += trainer.run_for(std::chrono::microseconds(50)) ? 1 : 0;
  return {testing::toy_weights(trainer), trainer.evaluate(set).loss};
}

}  // namespace

TEST_CASE("threads compile and train on one device at once, each to the bits that it gets alone") {
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  const Device device = Device::open();
  constexpr std::size_t count = 3;
  std::vector<Result> alone, together(count);
  for (std::size_t i = 0; i < count; ++i) alone.push_back(trained(device, set, i + 1));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] { together[i] = trained(device, set, i + 1); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < count; ++i) CHECK(together[i] == alone[i]);
}

TEST_CASE("a training thread shares a queue with a render thread, by the application's lock") {
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  testing::Application application;
  std::mutex queue;
  std::atomic<int> inside = 0;
  AdoptedDevice handles = application.handles();
  handles.lock_queue = [&] {
    queue.lock();
    inside += 1;
  };
  handles.unlock_queue = [&] {
    inside -= 1;
    queue.unlock();
  };
  const Result alone = trained(Device::adopt(handles), set, 5);
  Result beside;
  std::atomic<bool> done = false;
  std::thread training([&] {
    beside = trained(Device::adopt(handles), set, 5);
    done = true;
  });
  int frames = 0;
  bool good = true;
  for (; !done; ++frames) {
    const std::lock_guard lock(queue);
    good = good && inside == 0 && application.works();
  }
  training.join();
  CHECK(good);
  CHECK(frames > 0);
  CHECK(beside == alone);
  CHECK(application.works());
}
