#pragma once

#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>

#include "harness/device.h"
#include "harness/faults.h"
#include "host/temporary_folder.h"
#include "train/small_training.h"

/// Trainings whose submits fail.
namespace halfstep::testing {

/// A device, made under a FaultyVulkan, on which steps take many submits.
inline Device cut_device() {
  return Device::open(device().info().name, {.tuning = Tuning::off, .submit_milliseconds = 0.02, .may_fork = false});
}

inline const Dataset& failing_samples() {
  static const Dataset set = toy_dataset(96, {6, 5, 1}, 5);
  return set;
}

/// A training with every stage, on failing_samples().
inline Trainer failing_trainer(const Device& device) {
  const auto change = [](TrainerOptions& options) {
    options.accumulate = 2;
    options.clip_norm = 0.5F;
    options.ema_decay = 0.9F;
  };
  return toy_trainer(failing_samples(), {.batch = 16, .dropout = 0.25F, .device = device, .change = change});
}

/// Submits that fail once each, for lack of memory, on devices that are opened while this lives.
class Failures {
 public:
  /// Lets one submit fail, or another call, counted from here.
  void plan(std::size_t submit) { vulkan_.plan(Fault{"vkQueueSubmit", submit, VK_ERROR_OUT_OF_DEVICE_MEMORY}); }
  void plan(const Fault& fault) { vulkan_.plan(fault); }
  /// Whether it has failed; from here on nothing does. Counts the submits up to here.
  bool happened() {
    submits_ = vulkan_.calls()["vkQueueSubmit"];
    const bool failed = vulkan_.happened();
    vulkan_.plan(std::nullopt);
    return failed;
  }
  /// Whether `act` throws where one of its submits fails, which it must if it has so many.
  bool happen(std::size_t submit, const std::function<void()>& act) {
    plan(submit);
    bool thrown = false;
    try {
      act();
    } catch (const Error& error) {
      CAPTURE(error.what());
      CHECK(error.code() == ErrorCode::out_of_memory);
      thrown = true;
    }
    CHECK(thrown == happened());
    return thrown;
  }
  /// Calls `failing_at` with each submit of what it does, or of many with the first ones and then fewer, until it
  /// returns that none failed, since there are no more. Then with the last ones. Returns how many there were.
  std::size_t at_each(const std::function<bool(std::size_t)>& failing_at) {
    std::size_t submit = 1;
    while (failing_at(submit)) submit += every_variant() || submit < 16 ? 1 : submit / 8;
    const std::size_t submits = submits_;
    failing_at(submits);
    failing_at(submits - 1);
    return submits;
  }

 private:
  FaultyVulkan vulkan_;
  std::size_t submits_ = 0;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Weights, their averages, moments, scale and counters, as a checkpoint has them.
inline std::string state_of(Trainer& trainer) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "state";
  trainer.save(path);
  return contents(path);
}

}  // namespace halfstep::testing
