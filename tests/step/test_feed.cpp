#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "harness/device.h"
#include "plan/plan.h"
#include "reference/feed.h"
#include "reference/narrow.h"
#include "state/step_state.h"
#include "step/recording.h"
#include "step/stages.h"
#include "vk/command/timeline.h"
#include "vk/command/transfer.h"

namespace halfstep {
namespace {

using reference::FeedSettings;

constexpr std::uint64_t seed = 11;

Dataset random_images(std::int64_t count, Shape shape) {
  std::mt19937 random(5);
  Dataset set{.name = "random", .sample_shape = std::move(shape), .count = count, .classes = 7};
  for (std::int64_t i = 0; i < count * set.sample_bytes(); ++i) {
    set.samples.push_back(static_cast<std::uint8_t>(random()));
  }
  for (std::int64_t i = 0; i < count; ++i) set.labels.push_back(static_cast<std::uint32_t>(i % 7));
  return set;
}

/// Makes the input visible: the loss is sum(weights * input), so a step with a rate of 1 subtracts the input from the
/// weights.
class Probe {
 public:
  Probe(const Dataset& set, const Shape& input, const FeedSettings& feed,
        const Precision& precision = Precision::float32(), std::uint64_t resident_limit = 0)
      : trainer_(make(set, input, feed, precision, resident_limit)) {}

  /// Returns the input of the next step.
  std::vector<float> step() {
    const std::vector<float> before = trainer_.parameter("w");
    trainer_.step();
    trainer_.finish();
    std::vector<float> fed = trainer_.parameter("w");
    for (std::size_t i = 0; i < fed.size(); ++i) fed[i] = before[i] - fed[i];
    return fed;
  }
  Trainer& trainer() { return trainer_; }

 private:
  static Trainer make(const Dataset& set, const Shape& input, const FeedSettings& feed, Precision precision,
                      std::uint64_t resident_limit) {
    precision.loss_scale = LossScale::none();
    Graph graph;
    const Tensor images = graph.input("images", input);
    const Tensor labels = graph.input("labels", {input.front()}, DType::u32);
    const Tensor w = graph.root().parameter("w", input, constant(0));
    return Trainer::compile(testing::device(), graph,
                            {.loss = sum(mul(w, images)),
                             .optimizer = Sgd{.rate = 1},
                             .precision = precision,
                             .seed = seed,
                             .feed = Feed{.samples = images,
                                          .labels = labels,
                                          .mean = feed.mean,
                                          .stddev = feed.stddev,
                                          .augmentation = feed.augmentation},
                             .training_set = &set,
                             .resident_limit = resident_limit});
  }

  Trainer trainer_;
};

reference::Array image_of(const Dataset& set, std::uint32_t index) {
  const auto size = static_cast<std::size_t>(set.sample_bytes());
  const auto bytes = std::span(set.samples).subspan(index * size, size);
  return {set.sample_shape, std::vector<double>(bytes.begin(), bytes.end())};
}

/// Three steps of a batch of 5 against the reference.
void check_feed(const Dataset& set, const Shape& image, const FeedSettings& feed, const Precision& precision,
                std::uint64_t resident_limit) {
  Shape input = image;
  input.insert(input.begin(), 5);
  Probe probe(set, input, feed, precision, resident_limit);
  BatchSampler sampler = BatchSampler::training(set.count, 5, seed);
  const auto size = static_cast<std::size_t>(elements(image));
  // Values have magnitudes below 8, and so do their sums over a few steps.
  const DType type = precision.parameters;
  const double tolerance = is_narrow(type) ? 8 * reference::narrow(type).unit() : 8e-6;
  std::size_t wrong = 0;
  for (std::uint32_t step = 0; step < 3; ++step) {
    const std::vector<float> got = probe.step();
    const auto indices = sampler.batch(step);
    for (std::uint32_t b = 0; b < 5; ++b) {
      const reference::Array want = reference::fed(image_of(set, indices[b]), image, feed,
                                                   reference::draws(feed.augmentation, image, seed, step, b));
      for (std::size_t i = 0; i < size; ++i) {
        // NaN also counts as wrong.
        if (!(std::abs(static_cast<double>(got[b * size + i]) - want.values[i]) < tolerance)) wrong++;
      }
    }
  }
  CHECK(wrong == 0);
}

Augmentation everything() {
  return {.crop_padding = 2,
          .flip = 0.5F,
          .brightness = 0.4F,
          .saturation = 0.7F,
          .hue = 0.3F,
          .contrast = 0.3F,
          .cutout = 3};
}

FeedSettings with(const Augmentation& augmentation) {
  return {.mean = {0.5F, 0.4F, 0.3F}, .stddev = {0.25F, 0.3F, 0.2F}, .augmentation = augmentation};
}

/// Black with a white pixel in the middle.
Dataset dots(std::int64_t count, std::int64_t extent) {
  Dataset set{.name = "dots", .sample_shape = {extent, extent, 1}, .count = count, .classes = 1};
  const auto size = static_cast<std::size_t>(set.sample_bytes());
  set.samples.resize(size * static_cast<std::size_t>(count));
  for (std::size_t i = size / 2; i < set.samples.size(); i += size) set.samples[i] = 255;
  set.labels.resize(static_cast<std::size_t>(count));
  return set;
}

/// How far counts are from uniform: the chi-squared statistic's distance from its mean, in its standard deviations.
double surprise(const std::vector<int>& counts) {
  const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double chi2 = 0;
  for (const int count : counts) chi2 += (count - mean) * (count - mean) / mean;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return std::abs(chi2 - freedom) / std::sqrt(2 * freedom);
}

}  // namespace

TEST_CASE("images are cropped, mirrored, recoloured and cut out as the reference has it") {
  const Dataset set = random_images(17, {9, 7, 3});
  const Augmentation changes[] = {{},
                                  {.crop_padding = 4},
                                  {.flip = 1},
                                  {.brightness = 1},
                                  {.saturation = 1},
                                  {.hue = 0.5F},
                                  {.contrast = 1},
                                  {.cutout = 4},
                                  everything()};
  for (const Augmentation& augmentation : changes) {
    for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::bfloat16()}) {
      check_feed(set, {9, 7, 3}, with(augmentation), precision, 0);
    }
  }
  check_feed(set, {9, 7, 3}, with(everything()), Precision::float32(), 1);  // streamed, not resident
}

TEST_CASE("images are resized, and one channel goes to all, as the reference has it") {
  for (const Shape& input : {Shape{5, 7, 3}, Shape{11, 13, 3}, Shape{2, 29, 3}, Shape{1, 1, 3}}) {
    check_feed(random_images(17, {9, 7, 3}), input, with({}), Precision::float32(), 0);
    for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::bfloat16()}) {
      check_feed(random_images(17, {6, 11, 1}), input,
                 with(everything().cutout < input[0] ? everything() : Augmentation{}), precision, 1);
    }
  }
  check_feed(random_images(17, {4, 3, 1}), {3, 8, 5}, {.mean = {0.5F}, .stddev = {0.25F}}, Precision::float32(), 0);
  check_feed(random_images(17, {4, 3, 5}), {3, 8, 5}, {.mean = {0.5F}, .stddev = {0.25F}}, Precision::float32(), 0);
}

TEST_CASE("turning the hue keeps grey grey, and goes as far as it may but no further") {
  constexpr std::int64_t batch = 512;
  Dataset set = random_images(batch, {1, 2, 3});
  for (std::size_t i = 0; i < set.samples.size(); ++i) set.samples[i] = i % 6 == 0 ? 200 : i % 6 < 3 ? 0 : 77;
  FeedSettings feed;
  feed.stddev = {200.0F / 255};
  feed.augmentation = {.hue = 0.125F};
  Probe probe(set, {batch, 1, 2, 3}, feed);
  const std::vector<float> images = probe.step();
  float furthest = 0;
  int towards_green = 0;
  for (std::size_t i = 0; i < images.size(); i += 6) {
    // Red stays the largest; a rotation by an eighth of a turn is three quarters of the way to yellow, or to magenta.
    CHECK(images[i] == doctest::Approx(1).epsilon(1e-5));
    CHECK(std::min(images[i + 1], images[i + 2]) == doctest::Approx(0).epsilon(1e-5));
    furthest = std::max({furthest, images[i + 1], images[i + 2]});
    if (images[i + 1] > images[i + 2]) towards_green++;
    for (std::size_t c = 3; c < 6; ++c) CHECK(images[i + c] == doctest::Approx(77.0 / 200).epsilon(1e-5));
  }
  CHECK(furthest <= 0.75F + 1e-5F);
  CHECK(furthest > 0.74F);
  CHECK(std::abs(towards_green - batch / 2.0) < 4 * std::sqrt(batch / 4.0));
}

TEST_CASE("resizing keeps a flat image flat and leaves one of its own size alone") {
  Dataset flat = random_images(5, {8, 8, 1});
  std::ranges::fill(flat.samples, std::uint8_t{51});
  Probe probe(flat, {5, 13, 3, 3}, {});
  const std::vector<float> values = probe.step();
  CHECK(std::ranges::all_of(values, [](float v) { return std::abs(v - 0.2F) < 1e-6F; }));
}

/// Feeds the batch {5, 11, 6, 3} from images of another size, where a binding takes at most `most` bytes. Returns the
/// number of dispatches, and the input's bytes.
std::pair<std::size_t, std::vector<std::byte>> resized_batch(const Dataset& set, DType dtype, std::uint64_t most) {
  plan::Target target = testing::targets().front();
  target.max_storage_range = most;
  vk::Context& context = testing::context();
  plan::ProgramBuilder builder(target);
  std::vector<vk::Buffer> buffers;
  buffers.reserve(5);
  buffers.emplace_back(context, 1 << 20, vk::Memory::device, "arena");
  const auto add = [&](const char* name, std::span<const std::byte> bytes) {
    std::vector<std::byte> words(bytes.begin(), bytes.end());
    words.resize((words.size() + 3) / 4 * 4);
    buffers.emplace_back(context, words.size(), vk::Memory::device, name);
    vk::upload(context, buffers.back(), 0, words);
    return builder.place_bytes(name, words.size(), {builder.buffer(name), 0});
  };
  const std::vector<std::uint32_t> indices{2, 2, 1, 0, 2, 2, 1};
  state::StepState state;
  state.seed[0] = seed;
  step::SampleFeed feed{.state = add("state", std::as_bytes(std::span(&state, 1))),
                        .indices = add("indices", std::as_bytes(std::span(indices))),
                        .bytes = add("bytes", std::as_bytes(std::span(set.samples))),
                        .samples = 0,
                        .first = 2,
                        .stored = set.sample_shape,
                        .factor = {1.0F / 255, 1.0F / 255, 1.0F / 255, 0},
                        .augmentation = everything()};
  const TensorType type{dtype, {5, 11, 6, 3}};
  std::vector<std::byte> result(plan::byte_size(type));
  buffers.emplace_back(context, result.size(), vk::Memory::device, "input");
  feed.samples = builder.place("input", type, {builder.buffer("input"), 0});
  builder.stores().key_noise(feed.state);
  builder.stores().set(Rounding::stochastic, Overflow::infinity);
  step::feed_samples(builder, feed);
  const plan::Plan plan = plan::make_plan(builder.finish(), {.alignment = target.offset_alignment});
  REQUIRE(plan.arena.bytes <= buffers.front().bytes());
  std::vector<const vk::Buffer*> all;
  for (const vk::Buffer& buffer : buffers) all.push_back(&buffer);
  step::Recording recording(context, *testing::pipelines(), plan, all);
  vk::Timeline timeline(context);
  recording.run(timeline);
  vk::download(context, buffers.back(), 0, result);
  return {plan.program.dispatches.size(), result};
}

TEST_CASE("images whose columns one binding has no room for are resized in parts, to the same bits") {
  const Dataset set = random_images(3, {100, 9, 3});
  constexpr std::uint64_t image = 100 * 6 * 16;  // one image's columns
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const auto [dispatches, whole] = resized_batch(set, dtype, 5 * image);
    CHECK(dispatches == 2);
    // Of the last two, one image's columns take several bindings; of the last, the set does, too.
    for (const auto& [most, parts] :
         {std::pair(4 * image + 16, 2U), {3 * image, 2U}, {2 * image, 3U}, {image, 5U}, {image - 16, 5U}, {4096, 5U}}) {
      const auto [more, cut] = resized_batch(set, dtype, most);
      CHECK(more == 2 * parts);
      CHECK(cut == whole);
    }
  }
}

TEST_CASE("a batch of 128 large images is resized, whose columns take 224 MiB") {
  constexpr std::int64_t batch = 128;
  Dataset set{.name = "flat", .sample_shape = {512, 256, 1}, .count = batch, .classes = 1};
  const auto size = static_cast<std::size_t>(set.sample_bytes());
  for (std::size_t i = 0; i < batch; ++i) set.samples.insert(set.samples.end(), size, static_cast<std::uint8_t>(i));
  set.labels.resize(batch);
  Graph graph;
  const Tensor images = graph.input("images", {batch, 64, 224, 1});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor offset = graph.root().parameter("offset", {1}, constant(0));
  Trainer trainer = Trainer::compile(testing::device(), graph,
                                     {.loss = mean(bias(images, offset)),
                                      .precision = Precision::float32(),
                                      .feed = Feed{.samples = images, .labels = labels},
                                      .training_set = &set});
  trainer.step();
  trainer.finish();
  CHECK(trainer.report().loss == doctest::Approx(63.5 / 255).epsilon(1e-5));
}

TEST_CASE("evaluation sees the images as they are") {
  const Dataset set = random_images(17, {9, 7, 3});
  Probe probe(set, {5, 9, 7, 3}, with(everything()));
  const std::vector<float> weights = [&] {
    probe.step();
    return probe.trainer().parameter("w");
  }();
  const Dataset five = set.take(5);
  double want = 0;
  for (std::uint32_t b = 0; b < 5; ++b) {
    const reference::Array image = reference::fed(image_of(set, b), {9, 7, 3}, with({}), {});
    for (std::size_t i = 0; i < image.values.size(); ++i) {
      want += image.values[i] * static_cast<double>(weights[b * image.values.size() + i]);
    }
  }
  CHECK(probe.trainer().evaluate(five).loss == doctest::Approx(want).epsilon(1e-5));
}

TEST_CASE("crops, mirrored images and cut-out squares are spread evenly, and differ from step to step") {
  constexpr std::int64_t batch = 1024;
  constexpr std::int64_t extent = 5;
  const Dataset set = dots(batch, extent);
  FeedSettings feed;
  feed.augmentation = {.crop_padding = 2};
  Probe crops(set, {batch, extent, extent, 1}, feed);
  std::vector<int> places(extent * extent);
  std::vector<int> pairs(places.size());
  std::vector<float> last;
  for (int step = 0; step < 2; ++step) {
    const std::vector<float> images = crops.step();
    const auto place_of = [&](const std::vector<float>& all, std::size_t b) {
      const auto image = std::span(all).subspan(b * places.size(), places.size());
      return static_cast<std::size_t>(std::ranges::find(image, 1.0F) - image.begin());
    };
    for (std::size_t b = 0; b < batch; ++b) {
      REQUIRE(place_of(images, b) < places.size());
      places[place_of(images, b)]++;
      // The offset from the neighbour in the batch, and from the previous step, is also uniform if they are
      // independent.
      if (b > 0) pairs[(place_of(images, b) + places.size() - place_of(images, b - 1)) % places.size()]++;
      if (!last.empty()) pairs[(place_of(images, b) + places.size() - place_of(last, b)) % places.size()]++;
    }
    last = images;
  }
  CHECK(surprise(places) < 4);
  CHECK(surprise(pairs) < 4);
}

TEST_CASE("a factor is spread evenly between its bounds, and a mirror image comes as often as asked") {
  constexpr std::int64_t batch = 2048;
  Dataset set = dots(batch, 3);
  // The middle row is 100, 0, 0: mirrored, the 100 is on the right, multiplied by the brightness factor.
  for (std::size_t i = 0; i < set.samples.size(); ++i) set.samples[i] = i % 9 == 3 ? 100 : 0;
  FeedSettings feed;
  feed.stddev = {100.0F / 255};
  feed.augmentation = {.flip = 0.25F, .brightness = 0.5F};
  Probe probe(set, {batch, 3, 3, 1}, feed);
  const std::vector<float> images = probe.step();
  int mirrored = 0;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < images.size(); i += 9) {
    const auto left = static_cast<double>(images[i + 3]);
    const auto right = static_cast<double>(images[i + 5]);
    if (right > 0) mirrored++;
    const double factor = left + right;
    CHECK(left * right == 0);
    CHECK(factor >= 0.5);
    CHECK(factor <= 1.5);
    sum += factor;
    squares += (factor - 1) * (factor - 1);
  }
  CHECK(std::abs(mirrored - 0.25 * batch) < 4 * std::sqrt(0.25 * 0.75 * batch));
  CHECK(std::abs(sum / batch - 1) < 4 * std::sqrt(1.0 / 12 / batch));
  CHECK(squares / batch == doctest::Approx(1.0 / 12).epsilon(0.1));
}

}  // namespace halfstep
