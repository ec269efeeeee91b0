#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "plan/program.h"
#include "step/stages.h"
#include "train/feed.h"

using namespace halfstep;

namespace {

// The error for inputs of shape `input`, changed by `change`, with samples of shape `stored`.
std::string refusal(const std::function<void(Feed&)>& change, const Shape& stored = {6, 8, 3},
                    const Shape& input = {4, 6, 8, 3}) {
  Graph graph;
  TrainerOptions options;
  Feed feed{.samples = graph.input("images", input), .labels = graph.input("labels", {4}, DType::u32)};
  change(feed);
  Dataset set{.name = "toy", .sample_shape = stored, .count = 1, .classes = 1, .labels = {0}};
  set.samples.resize(static_cast<std::size_t>(set.sample_bytes()));
  options.training_set = &set;
  try {
    train::sample_inputs(feed, graph.ir(), train::TrainingData(options), 0);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool refuses(std::string_view part, const std::function<void(Feed&)>& change, const Shape& stored = {6, 8, 3}) {
  const std::string text = refusal(change, stored);
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

void nothing(Feed&) {}

}  // namespace

TEST_CASE("A feed takes samples of the input's shape, or images that can be resized to it") {
  CHECK(refusal(nothing).empty());
  CHECK(refusal(nothing, {100, 3, 3}).empty());
  CHECK(refusal(nothing, {100, 3, 1}).empty());
  refuses("expected samples of {6, 8, 3} for 'images', got {6, 8, 2}", nothing, {6, 8, 2});
  refuses("got {48, 3}", nothing, {48, 3});
  refuses("got {6, 8, 1, 3}", nothing, {6, 8, 1, 3});
}

TEST_CASE("What is fed where no set says so follows from the input: bytes of Feed::samples alone") {
  Graph graph;
  const Tensor samples = graph.input("samples", {4, 8});
  const Tensor images = graph.input("images", {4, 8});
  const auto type = [&](const Feed& feed) {
    return train::sample_inputs(feed, graph.ir(), train::TrainingData({}), 0).fields.front().type;
  };
  CHECK(type({.inputs = {{.input = samples}}}) == ElementType::f32);
  CHECK(type({.samples = images}) == ElementType::u8);
  CHECK(type({.samples = samples}) == ElementType::u8);
}

TEST_CASE("Samples are resized in two passes, each of which the driver's limit of loop rounds must allow") {
  plan::Target target;
  target.max_storage_buffers = 8;
  target.max_rounds = 100;
  const auto dispatches = [&](const Shape& stored) {
    plan::ProgramBuilder builder(target);
    const auto place = [&](const char* name, const TensorType& type) {
      return builder.place(name, type, {builder.buffer(name), 0});
    };
    step::feed_samples(builder, {.state = place("state", {DType::u32, {20}}),
                                 .indices = place("indices", {DType::u32, {4}}),
                                 .bytes = place("bytes", {DType::u32, {1000}}),
                                 .samples = place("images", {DType::f32, {4, 6, 8, 3}}),
                                 .stored = stored});
    return builder.finish().dispatches;
  };
  CHECK(dispatches({6, 8, 3}).size() == 1);
  CHECK(dispatches({49 * 6, 49 * 8, 3}).size() == 2);
  CHECK_THROWS_WITH_AS(dispatches({49 * 6 + 1, 8, 3}),
                       doctest::Contains("[feed] expected a kernel of at most 100 loop"), Error);
  CHECK_THROWS_WITH_AS(dispatches({6, 49 * 8 + 1, 3}),
                       doctest::Contains("[resize columns] expected a kernel of at most 100 loop"), Error);
}

TEST_CASE("Augmentation out of range is refused by name") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {-0.1F, 1.1F, nan}) {
    refuses("flip", [&](Feed& feed) { feed.augmentation.flip = bad; });
    refuses("brightness", [&](Feed& feed) { feed.augmentation.brightness = bad; });
    refuses("saturation", [&](Feed& feed) { feed.augmentation.saturation = bad; });
    refuses("contrast", [&](Feed& feed) { feed.augmentation.contrast = bad; });
  }
  refuses("crop_padding to be 0 to 8, got 9", [](Feed& feed) { feed.augmentation.crop_padding = 9; });
  refuses("cutout to be 0 to 8, got -1", [](Feed& feed) { feed.augmentation.cutout = -1; });
  const auto saturate = [](Feed& feed) { feed.augmentation.saturation = 0.5F; };
  CHECK(refusal(saturate, {6, 8, 1}, {4, 6, 8, 1}).find("expected three channels") != std::string::npos);
  CHECK(refusal(saturate, {48, 3}, {4, 48, 3}).find("expected images") != std::string::npos);
}

TEST_CASE("A mean and std are one, or one a channel, and can be divided by") {
  refuses("3 for as many channels", [](Feed& feed) { feed.mean = {0, 0}; });
  refuses("positive std", [](Feed& feed) { feed.stddev = {1, 0, 1}; });
  refuses("finite mean", [](Feed& feed) { feed.mean = {std::numeric_limits<float>::infinity()}; });
}
