#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

const Dataset& training_set() {
  static const Dataset set = testing::toy_dataset(203, {6, 5, 1}, 3);
  return set;
}

void run(Trainer& trainer, int steps) {
  for (int i = 0; i < steps; ++i) trainer.step();
  trainer.finish();
}

}  // namespace

TEST_CASE("a run that was stopped and resumed ends on the same bits") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.safetensors";
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    for (const Optimizer& optimizer :
         {Optimizer{Sgd{.rate = 0.01F, .momentum = 0.9F}}, Optimizer{Adam{.rate = Schedule::cosine(0.01F, 10, 90)}}}) {
      for (const std::uint64_t resident_limit : {0U, 1U}) {
        CAPTURE(precision.name);
        const testing::ToyOptions options{
            .optimizer = optimizer,
            .precision = precision,
            .resident_limit = resident_limit,
            .augmentation = {.crop_padding = 1, .flip = 0.5F, .brightness = 0.3F, .cutout = 2}};
        Trainer whole = testing::toy_trainer(training_set(), options);
        run(whole, 70);
        Trainer first = testing::toy_trainer(training_set(), options);
        run(first, 33);  // in the middle of the second epoch
        first.save(file);
        testing::ToyOptions other = options;
        other.seed = 99;  // the checkpoint's own seed goes on
        Trainer second = testing::toy_trainer(training_set(), other);
        run(second, 5);
        second.load(file);
        run(second, 37);
        CHECK(testing::toy_weights(second) == testing::toy_weights(whole));
        CHECK(second.report().step == 70);
      }
    }
  }
}

TEST_CASE("saving disturbs nothing, and saves the same bytes twice") {
  const TemporaryFolder folder;
  const auto bytes = [&](const char* name) {
    std::ifstream file(folder.path() / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Trainer trainer = testing::toy_trainer(training_set(), {});
  run(trainer, 9);
  trainer.save(folder.path() / "a");
  trainer.save(folder.path() / "b");
  CHECK(bytes("a").size() > 1000);
  CHECK(bytes("a") == bytes("b"));
}

TEST_CASE("another model's checkpoint is refused by its first tensor that differs, and changes nothing") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "other.safetensors";
  const Dataset other_set = testing::toy_dataset(50, {6, 5, 1}, 4);
  Trainer other = testing::toy_trainer(other_set, {});
  other.save(file);
  Trainer trainer = testing::toy_trainer(training_set(), {});
  run(trainer, 5);
  const std::vector<float> before = testing::toy_weights(trainer);
  CHECK_THROWS_WITH_AS(trainer.load(file), doctest::Contains("'dense/weight'"), Error);
  CHECK(testing::toy_weights(trainer) == before);
  Trainer with_sgd = testing::toy_trainer(training_set(), {.optimizer = Sgd{.rate = 0.01F}});
  with_sgd.save(file);
  CHECK_THROWS_AS(trainer.load(file), Error);
  CHECK_THROWS_AS(with_sgd.load(folder.path() / "missing"), Error);
}

TEST_CASE("f16 weights saved from stochastic rounding load into f32 unchanged") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "narrow.safetensors";
  Trainer narrow = testing::toy_trainer(training_set(), {.precision = Precision::float16()});
  run(narrow, 20);
  narrow.save(file);
  Trainer wide = testing::toy_trainer(training_set(), {.precision = Precision::float32()});
  wide.load(file);
  CHECK(testing::toy_weights(wide) == testing::toy_weights(narrow));
}

}  // namespace halfstep
