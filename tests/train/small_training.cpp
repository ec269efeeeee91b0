#include "train/small_training.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "base/philox.h"
#include "harness/device.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "models/layers.h"

namespace halfstep::testing {

Dataset toy_dataset(std::int64_t count, Shape shape, std::uint32_t classes, std::uint64_t seed) {
  Dataset set{.name = "toy", .sample_shape = std::move(shape), .count = count, .classes = classes};
  for (std::int64_t i = 0; i < count; ++i) {
    // The label is the index of the brightest of `classes` equal ranges of the sample.
    const std::int64_t size = set.sample_bytes();
    const auto words = process::philox4x32({static_cast<std::uint32_t>(i), 9, 0, 0}, process::philox_key(seed));
    const std::uint32_t label = words[0] % classes;
    for (std::int64_t j = 0; j < size; ++j) {
      const auto noise = process::philox4x32({static_cast<std::uint32_t>(i), 10, static_cast<std::uint32_t>(j), 0},
                                             process::philox_key(seed));
      const bool bright = j * classes / size == label;
      set.samples.push_back(static_cast<std::uint8_t>(noise[0] % 100 + (bright ? 120 : 0)));
    }
    set.labels.push_back(label);
  }
  return set;
}

const Dataset& toy_set() {
  static const Dataset set = toy_dataset(203, {6, 5, 1}, 3);
  return set;
}

void run(Trainer& trainer, int steps) {
  for (int i = 0; i < steps; ++i) trainer.step();
  trainer.finish();
}

Trainer toy_trainer(const Dataset& set, const ToyOptions& options) {
  Graph graph;
  Shape shape = set.sample_shape;
  shape.insert(shape.begin(), options.batch);
  const Tensor images = graph.input("images", shape);
  const Tensor labels = graph.input("labels", {options.batch}, DType::u32);
  const Tensor hidden = relu(models::same_conv(graph.root() / "conv", images, 6, 3));
  const Tensor features = dropout(flatten(max_pool2d(hidden)), options.dropout);
  const Tensor logits = models::dense(graph.root() / "dense", features, set.classes);
  TrainerOptions made{.loss = cross_entropy(logits, labels),
                      .metrics = {{"accuracy", accuracy(logits, labels)}},
                      .optimizer = options.optimizer,
                      .precision = options.precision,
                      .seed = options.seed,
                      .feed = Feed{.samples = images, .labels = labels, .augmentation = options.augmentation},
                      .training_set = &set,
                      .resident_limit = options.resident_limit};
  if (options.change) options.change(made);
  return Trainer::compile(options.device.value_or(device()), graph, std::move(made));
}

Trainer Pull::make(std::int64_t count, float start, Optimizer optimizer, Precision precision, std::uint64_t seed,
                   const Change& change) {
  Graph graph;
  const Tensor pull = graph.input("pull", {count});
  const Tensor w = graph.root().parameter("w", {count}, constant(start));
  TrainerOptions options{
      .loss = sum(mul(w, pull)), .optimizer = std::move(optimizer), .precision = std::move(precision), .seed = seed};
  if (change) change(options);
  return Trainer::compile(device(), graph, std::move(options));
}

Pull::Pull(std::int64_t count, float start, Optimizer optimizer, Precision precision, std::uint64_t seed,
           const Change& change)
    : count_(count), trainer_(make(count, start, std::move(optimizer), std::move(precision), seed, change)) {}

void Pull::step(const std::vector<float>& pulls) {
  std::vector<float> values;
  for (const float pull : pulls) values.insert(values.end(), static_cast<std::size_t>(count_), pull);
  trainer_.step({{"pull", std::span<const float>(values)}});
  trainer_.finish();
}

void Pull::run(float pull, int steps) {
  for (int i = 0; i < steps; ++i) step(pull);
}

void change_state(Trainer& trainer, const std::function<void(state::StepState&)>& change) {
  const TemporaryFolder folder;
  trainer.save(folder.path() / "saved");
  const io::SafetensorsFile saved(folder.path() / "saved");
  std::vector<io::StoredTensor> tensors = saved.tensors();
  const auto found = std::ranges::find(tensors, "halfstep.state", &io::StoredTensor::name);
  REQUIRE(found != tensors.end());
  state::StepState state;
  REQUIRE(found->data.size() == sizeof state);
  std::memcpy(&state, found->data.data(), sizeof state);
  change(state);
  found->data = std::as_bytes(std::span(&state, 1));
  io::write_safetensors(folder.path() / "changed", tensors, saved.metadata());
  trainer.load(folder.path() / "changed");
}

Precision overflowing() {
  Precision precision = Precision::mixed();
  precision.loss_scale.initial = 0x1p24F;
  precision.loss_scale.ceiling = 0x1p24F;
  return precision;
}

std::vector<float> all_weights(Trainer& trainer, std::span<const std::string> names) {
  std::vector<float> all;
  for (const std::string& name : names) {
    const std::vector<float> values = trainer.parameter(name);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<float> toy_weights(Trainer& trainer) {
  const std::string names[] = {"conv/weight", "conv/bias", "dense/weight", "dense/bias"};
  return all_weights(trainer, names);
}

}  // namespace halfstep::testing
