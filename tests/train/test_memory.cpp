// What a training takes in memory, and what is said where there is too little.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <regex>

#include "harness/device.h"
#include "harness/faults.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

constexpr std::int64_t batch = 256;

Trainer trainer_with(const Dataset& data, std::uint64_t limit, std::int64_t batch_size,
                     const Device& device = testing::device()) {
  return testing::toy_trainer(data,
                              {.batch = batch_size, .resident_limit = 1, .device = device, .change = [&](auto& to) {
                                 to.memory_limit = limit;
                               }});
}

std::string refusal(const Dataset& data, std::uint64_t limit, const Device& device = testing::device()) {
  try {
    trainer_with(data, limit, batch, device);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    return error.what();
  }
  return "no refusal";
}

std::string ask(const std::string& text, const std::string& pattern) {
  std::smatch found;
  CAPTURE(text);
  REQUIRE(std::regex_search(text, found, std::regex(pattern)));
  return found[1];
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a training that exceeds its memory limit is refused with what takes how much and what batch fits") {
  const Dataset data = testing::toy_dataset(batch, {6, 5, 1}, 3);
  const std::uint64_t needed = trainer_with(data, 0, batch).inspect().summary().peak_bytes;
  CHECK(trainer_with(data, needed, batch).inspect().summary().peak_bytes == needed);
  const std::string text = refusal(data, needed - 1);
  CAPTURE(text);
  CHECK(contains(text, "the memory limit"));
  CHECK(contains(text, "of activations (the largest: '"));
  CHECK(contains(text, "of weights"));
  CHECK(contains(text, "of gradients"));
  CHECK(contains(text, "of optimizer state"));
  for (const std::uint64_t limit : {needed / 2, needed / 5}) {
    const std::int64_t fits = std::stoll(ask(refusal(data, limit), "batch of about ([0-9]+) fits"));
    CHECK(fits > 4);
    CHECK(fits < batch);
    CHECK_NOTHROW(trainer_with(data, limit, 9 * fits / 10));
  }
  CHECK(contains(refusal(data, 1), "not even a batch of 1"));
}

TEST_CASE("a device with too little memory is named before any is allocated") {
  const Dataset data = testing::toy_dataset(1 << 14, {6, 5, 1}, 3);
  const Device device = Device::open(testing::device().info().name,
                                     {.tuning = Tuning::off, .limits = "memory=2000000", .may_fork = false});
  try {
    trainer_with(data, 0, 1 << 14, device);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    CHECK(contains(error.what(), "what " + device.info().name + " has"));
  }
  CHECK_NOTHROW(trainer_with(data, 0, 64, device));
}

TEST_CASE("where the driver has no more memory, the training that wanted it is described") {
  const Dataset data = testing::toy_dataset(batch, {6, 5, 1}, 3);
  testing::FaultyVulkan vulkan;
  const Device device = Device::open(testing::device().info().name, {.tuning = Tuning::off, .may_fork = false});
  vulkan.plan(testing::Fault{"vkCreateBuffer", 2, VK_ERROR_OUT_OF_DEVICE_MEMORY});
  const std::string text = refusal(data, 0, device);
  CAPTURE(text);
  CHECK(contains(text, "VK_ERROR_OUT_OF_DEVICE_MEMORY"));
  CHECK(contains(text, "The training takes "));
  CHECK(contains(text, "are free now"));
}

}  // namespace halfstep
