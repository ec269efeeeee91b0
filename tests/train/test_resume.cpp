#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {
using testing::run;

TEST_CASE("a run that was stopped and resumed ends on the same bits") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.safetensors";
  Precision noisy = Precision::float16();
  noisy.moments = DType::f16;
  noisy.rounding = {Rounding::stochastic, Rounding::stochastic, Rounding::stochastic, Rounding::stochastic};
  noisy.gradient_scales = GradientScales::per_tensor;
  std::uint64_t limit = 0;  // streamed where it is 1: of each precision and each optimizer, some are
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16(), noisy}) {
    for (const Optimizer& optimizer :
         {Optimizer{Sgd{.rate = 0.01F, .momentum = 0.9F}}, Optimizer{Adam{.rate = Schedule::cosine(0.01F, 10, 90)}},
          Optimizer{Lion{.rate = 0.001F}}, Optimizer{Muon{.rate = 0.001F, .products = DType::f16}},
          Optimizer{RmsProp{.rate = 0.001F, .momentum = 0.5F, .centered = true}}}) {
      CAPTURE(precision.name);
      CAPTURE(optimizer->name());
      limit = 1 - limit;
      const testing::ToyOptions options{
          .optimizer = optimizer,
          .precision = precision,
          .resident_limit = limit,
          .augmentation = {.crop_padding = 1, .flip = 0.5F, .brightness = 0.3F, .cutout = 2},
          .dropout = 0.3F};
      Trainer whole = testing::toy_trainer(testing::toy_set(), options);
      run(whole, 70);
      Trainer first = testing::toy_trainer(testing::toy_set(), options);
      run(first, 33);  // in the middle of the second epoch
      first.save(file);
      testing::ToyOptions other = options;
      other.seed = 99;  // the checkpoint's seed is used instead
      Trainer second = testing::toy_trainer(testing::toy_set(), other);
      run(second, 5);
      second.load(file);
      run(second, 37);
      CHECK(testing::toy_weights(second) == testing::toy_weights(whole));
      CHECK(second.report().step == 70);
    }
  }
}

namespace {

/// Two runs of nine steps, one of them with a checkpoint in `folder`: checks that they end with the same file.
void check_resumed(const testing::ToyOptions& options, const std::filesystem::path& folder) {
  const auto bytes = [&](const char* name) {
    std::ifstream file(folder / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Trainer whole = testing::toy_trainer(testing::toy_set(), options);
  run(whole, 5);
  whole.save(folder / "middle");
  run(whole, 4);
  whole.save(folder / "whole");
  testing::ToyOptions other = options;
  other.seed = 99;
  Trainer resumed = testing::toy_trainer(testing::toy_set(), other);
  run(resumed, 1);
  resumed.load(folder / "middle");
  run(resumed, 4);
  resumed.save(folder / "resumed");
  CHECK(bytes("whole").size() > 900);
  CHECK(bytes("whole") == bytes("resumed"));
}

}  // namespace

TEST_CASE("every optimizer goes on from its checkpoint on the same bits, whatever stores its options leave empty") {
  const TemporaryFolder folder;
  const Optimizer optimizers[] = {Sgd{},
                                  Sgd{.momentum = 0.9F},
                                  Sgd{.momentum = 0.9F, .nesterov = true},
                                  Adam{},
                                  AdamW{},
                                  Lion{},
                                  Muon{},
                                  RmsProp{},
                                  RmsProp{.momentum = 0.5F, .centered = true}};
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    for (const Optimizer& optimizer : optimizers) {
      for (const bool frozen : {false, true}) {
        for (const bool averaged : {false, true}) {
          CAPTURE(precision.name);
          CAPTURE(optimizer->name());
          CAPTURE(frozen);
          CAPTURE(averaged);
          testing::ToyOptions options{.optimizer = optimizer, .precision = precision};
          options.change = [&](TrainerOptions& made) {
            if (frozen) made.groups = {{.pattern = "conv/*", .frozen = true}};
            if (averaged) made.ema_decay = 0.9F;
          };
          check_resumed(options, folder.path());
        }
      }
    }
  }
}

TEST_CASE("copies of weights that are rounded at random go on from a checkpoint on the same bits") {
  const TemporaryFolder folder;
  Precision rounded = Precision::mixed();
  rounded.loss_scale = LossScale::fixed(64);
  rounded.rounding.weights = Rounding::stochastic;
  Precision wide = Precision::bfloat16();
  wide.rounding.weights = Rounding::stochastic;
  wide.layer("dense", DType::f32);
  for (const Precision& precision : {rounded, wide}) {
    CAPTURE(precision.name);
    check_resumed({.precision = precision}, folder.path());
  }
}

TEST_CASE("groups of several optimizers go on from a checkpoint on the same bits") {
  const TemporaryFolder folder;
  Precision noisy = Precision::float16();
  noisy.moments = DType::f16;
  noisy.rounding.optimizer = Rounding::stochastic;
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), noisy}) {
    CAPTURE(precision.name);
    testing::ToyOptions options{.optimizer = Muon{.rate = Schedule::cosine(0.01F, 2, 30)}, .precision = precision};
    options.change = [](TrainerOptions& made) {
      made.groups = {{.pattern = "dense/weight", .optimizer = Adam{.rate = 0.01F, .beta1 = 0.5F}},
                     {.pattern = "dense/bias", .frozen = true}};
    };
    check_resumed(options, folder.path());
    const io::SafetensorsFile file(folder.path() / "whole");
    CHECK(file.metadata().at("optimizer") == "muon, adamw, adam");
    CHECK(file.find("conv.weight.momentum") != nullptr);
    CHECK(file.find("conv.bias.second_moment") != nullptr);
    CHECK(file.find("dense.weight.first_moment") != nullptr);
    CHECK(file.find("halfstep.optimizers")->shape == Shape{8});
    std::vector<io::StoredTensor> tensors = file.tensors();
    std::erase_if(tensors, [](const io::StoredTensor& tensor) { return tensor.name == "halfstep.optimizers"; });
    io::write_safetensors(folder.path() / "without", tensors, file.metadata());
    Trainer trainer = testing::toy_trainer(testing::toy_set(), options);
    CHECK_THROWS_WITH_AS(trainer.load(folder.path() / "without"),
                         doctest::Contains("expected 'halfstep.optimizers' as F32 {8}, got none"), Error);
  }
}

TEST_CASE("checkpoints name an optimizer and its states as they always did") {
  const TemporaryFolder folder;
  struct Case {
    Optimizer optimizer;
    const char* name;
    std::vector<std::string> states;
  };
  const Case cases[] = {{Sgd{}, "sgd", {}},
                        {Sgd{.momentum = 0.9F}, "sgd", {"momentum"}},
                        {Adam{}, "adam", {"first_moment", "second_moment"}},
                        {AdamW{}, "adamw", {"first_moment", "second_moment"}}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    testing::toy_trainer(testing::toy_set(), {.optimizer = c.optimizer}).save(folder.path() / "checkpoint");
    const io::SafetensorsFile file(folder.path() / "checkpoint");
    CHECK(file.metadata().at("optimizer") == c.name);
    CHECK(file.tensors().size() == 4 * (1 + c.states.size()) + 1);
    for (const std::string& state : c.states) CHECK(file.find("dense.bias." + state) != nullptr);
  }
}

TEST_CASE("attempted steps carry over into their high word, which noise is keyed on too") {
  testing::Pull pull(4, 1, Sgd{.rate = 0.5F}, Precision::float32());
  pull.step(1);
  testing::change_state(pull.trainer(), [](state::StepState& state) { state.attempted[0] = 0xFFFFFFFF; });
  pull.step(1);
  CHECK(pull.trainer().report().step == std::uint64_t{1} << 32);
  pull.step(1);
  CHECK(pull.trainer().report().step == (std::uint64_t{1} << 32) + 1);
}

TEST_CASE("a dynamic loss scale begins where it is asked to after a training that had none, or a fixed one") {
  Precision precision = Precision::mixed();
  precision.loss_scale = {.kind = LossScale::Kind::dynamic, .initial = 1024, .interval = 3};
  testing::Pull dynamic(4, 1, Sgd{.rate = 0.5F}, precision);
  const auto scales = [&](const Checkpoint& from) {
    dynamic.trainer().load(from);
    std::vector<float> seen;
    for (int i = 0; i < 4; ++i) {
      dynamic.step(1);
      seen.push_back(dynamic.trainer().report().loss_scale);
    }
    return seen;
  };
  for (const LossScale& before : {LossScale::none(), LossScale::fixed(8)}) {
    precision.loss_scale = before;
    testing::Pull other(4, 1, Sgd{.rate = 0.5F}, precision);
    other.run(1, 5);
    CHECK(scales(other.trainer().checkpoint()) == std::vector<float>{1024, 1024, 1024, 2048});
  }
  CHECK(scales(dynamic.trainer().checkpoint()) == std::vector<float>{2048, 2048, 4096, 4096});
}

TEST_CASE("moments multiplied by what is no loss scale are refused") {
  Precision precision = Precision::mixed();
  precision.loss_scale = {.kind = LossScale::Kind::fixed, .initial = 16, .in_rate = true};
  testing::Pull pull(4, 1, Sgd{.rate = 0.5F, .momentum = 0.5F}, precision);
  pull.step(1);
  for (const float scale : {0.0F, -1.0F, std::nanf("")}) {
    CHECK_THROWS_WITH_AS(
        testing::change_state(pull.trainer(), [=](state::StepState& state) { state.loss_scale = scale; }),
        doctest::Contains("expected a positive loss scale"), Error);
  }
}

TEST_CASE("saving disturbs nothing, and saves the same bytes twice") {
  const TemporaryFolder folder;
  const auto bytes = [&](const char* name) {
    std::ifstream file(folder.path() / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  run(trainer, 9);
  trainer.save(folder.path() / "a");
  trainer.save(folder.path() / "b");
  CHECK(bytes("a").size() > 1000);
  CHECK(bytes("a") == bytes("b"));
}

TEST_CASE("a checkpoint is written on another thread as it was when it was taken, while training goes on") {
  const TemporaryFolder folder;
  const auto bytes = [&](const char* name) {
    std::ifstream file(folder.path() / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  run(trainer, 9);
  trainer.save(folder.path() / "then");
  const Checkpoint taken = trainer.checkpoint();
  std::thread writer([&] {
    for (int i = 0; i < 10; ++i) taken.write(folder.path() / "later");
  });
  run(trainer, 20);
  writer.join();
  CHECK(bytes("then").size() > 1000);
  CHECK(bytes("then") == bytes("later"));
  trainer.checkpoint({{"colour", "blue"}}).write(folder.path() / "noted");
  CHECK(io::SafetensorsFile(folder.path() / "noted").metadata().at("colour") == "blue");
  CHECK_THROWS_WITH_AS(trainer.checkpoint({{"seed", "5"}}), doctest::Contains("got 'seed'"), Error);
  CHECK_THROWS_WITH_AS(trainer.checkpoint({{"ranks", "5"}}), doctest::Contains("got 'ranks'"), Error);
  CHECK_THROWS_WITH_AS(trainer.checkpoint({{"a\xff", "5"}}), doctest::Contains("got another byte after 'a'"), Error);
}

TEST_CASE("with another batch size or fewer samples, the epoch in progress goes on where it was") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.safetensors";
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});  // 25 steps of 8 of 203 samples
  run(trainer, 35);
  trainer.save(file);
  const auto same = [](const ResumePoint& point, std::uint64_t step, std::int64_t epoch, std::int64_t epoch_step) {
    return point.step == step && point.epoch == epoch && point.epoch_step == epoch_step;
  };
  CHECK(same(trainer.load(file), 35, 1, 10));
  for (const std::uint64_t resident_limit : {0U, 1U}) {
    Trainer wider = testing::toy_trainer(testing::toy_set(), {.batch = 16, .resident_limit = resident_limit});
    CHECK(same(wider.load(file), 35, 1, 5));
    run(wider, 7);
    wider.save(folder.path() / "wider");
    const io::SafetensorsFile saved(folder.path() / "wider");
    CHECK(saved.metadata().at("epoch") == "2");
    CHECK(saved.metadata().at("epoch_step") == "0");
    CHECK(saved.metadata().at("step") == "42");
    CHECK(same(wider.load(folder.path() / "wider"), 42, 2, 0));
  }
  const Dataset fewer = testing::toy_set().take(100);
  Trainer shorter = testing::toy_trainer(fewer, {});
  CHECK(same(shorter.load(file), 35, 1, 4));  // 80 of 203 samples are 39 of 100
}

TEST_CASE("with another batch size, the schedule goes on at the same place in epochs") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.safetensors";
  const auto trainer = [&](std::int64_t batch) {
    std::vector<float> rates;  // falls by 1e-5 with every step
    for (int i = 0; i < 60; ++i) rates.push_back(1e-5F * static_cast<float>(1000 - i));
    return testing::toy_trainer(testing::toy_set(), {.batch = batch, .optimizer = Adam{.rate = Schedule(rates)}});
  };
  const auto place = [](Trainer& of) { return std::lround(1000 - 1e5F * of.report().rate); };
  Trainer narrow = trainer(8);  // 25 steps an epoch
  run(narrow, 35);
  CHECK(place(narrow) == 34);
  narrow.save(file);
  Trainer wide = trainer(16);  // 12 steps an epoch
  wide.load(file);
  for (const long step : {12 + 5, 12 + 6, 12 + 7}) {
    run(wide, 1);
    CHECK(place(wide) == step);
  }
  wide.save(file);
  narrow.load(file);  // 8 steps of 16 are 16 of 8
  for (const long step : {25 + 16, 25 + 17}) {
    run(narrow, 1);
    CHECK(place(narrow) == step);
  }
}

TEST_CASE("a source without a count goes on after what all ranks were given, on more or fewer of them") {
  const TemporaryFolder folder;
  using Numbers = std::vector<std::int64_t>;
  // Makes steps, from a checkpoint where there is one; returns the numbers of their batches.
  const auto made = [&](const Ranks& ranks, int steps, const char* from, const char* to) {
    Numbers numbers;
    {
      Source source{.name = "endless",
                    .fields = {{.name = "x", .type = ElementType::f32, .shape = {3}}},
                    .fill = [&](const SourceBatch& batch) {
                      numbers.push_back(batch.number);
                      std::ranges::fill(batch.values<float>(0), 1.0F);
                    }};
      Graph graph;
      const Tensor x = graph.input("x", {2, 3});
      const Tensor w = graph.root().parameter("w", {2, 3}, constant(1));
      Trainer trainer = Trainer::compile(testing::device(), graph,
                                         {.loss = sum(mul(w, x)),
                                          .optimizer = Sgd{.rate = 0.5F},
                                          .ranks = ranks,
                                          .precision = Precision::float32(),
                                          .feed = Feed{.inputs = {{.input = x}}},
                                          .source = &source});
      if (from != nullptr) {
        trainer.load(folder.path() / from);
        numbers.clear();
      }
      run(trainer, steps);
      trainer.save(folder.path() / to);
    }  // nobody fills ahead any more
    numbers.resize(static_cast<std::size_t>(steps));
    return numbers;
  };
  const auto on_two = [&](int steps, const char* from, const char* to) {
    return testing::results_of_ranks<Numbers>(2, [&](int, const Ranks& ranks) { return made(ranks, steps, from, to); });
  };
  const std::vector<Numbers> two = on_two(10, nullptr, "two");
  CHECK(two[0].back() == 18);
  CHECK(two[1].back() == 19);
  CHECK(made({}, 3, "two", "one") == Numbers{20, 21, 22});
  const std::vector<Numbers> again = on_two(2, "one", "again");
  CHECK(again[0] == Numbers{24, 26});  // 23 is left out
  CHECK(again[1] == Numbers{25, 27});
}

TEST_CASE("a checkpoint that says it is of another model is refused") {
  const TemporaryFolder folder;
  const auto called = [](const char* name) {
    return testing::toy_trainer(testing::toy_set(),
                                {.change = [name](TrainerOptions& options) { options.model = name; }});
  };
  called("one").save(folder.path() / "checkpoint");
  CHECK_NOTHROW(called("one").load(folder.path() / "checkpoint"));
  CHECK_NOTHROW(called("").load(folder.path() / "checkpoint"));
  called("no UTF-8: \xFF").save(folder.path() / "replaced");
  CHECK_NOTHROW(called("no UTF-8: \xFF").load(folder.path() / "replaced"));
  CHECK_THROWS_WITH_AS(called("two").load(folder.path() / "checkpoint"),
                       doctest::Contains("expected a checkpoint of model two, got one of one"), Error);
}

TEST_CASE("another model's checkpoint is refused by its first tensor that differs, and changes nothing") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "other.safetensors";
  const Dataset other_set = testing::toy_dataset(50, {6, 5, 1}, 4);
  Trainer other = testing::toy_trainer(other_set, {});
  other.save(file);
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  run(trainer, 5);
  const std::vector<float> before = testing::toy_weights(trainer);
  CHECK_THROWS_WITH_AS(trainer.load(file), doctest::Contains("dense.weight: expected"), Error);
  CHECK(testing::toy_weights(trainer) == before);
  Trainer with_sgd = testing::toy_trainer(testing::toy_set(), {.optimizer = Sgd{.rate = 0.01F}});
  with_sgd.save(file);
  CHECK_THROWS_AS(trainer.load(file), Error);
  CHECK_THROWS_AS(with_sgd.load(folder.path() / "missing"), Error);
}

}  // namespace halfstep
