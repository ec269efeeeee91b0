#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "models/layers.h"
#include "train/small_training.h"

namespace halfstep {
using testing::run;

TEST_CASE("weights are saved by the names and axes that PyTorch has, and load into another model by them") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights.safetensors";
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  run(trainer, 7);
  trainer.save_weights(path);
  const io::SafetensorsFile file(path);
  REQUIRE(file.tensors().size() == 4);
  REQUIRE(file.find("conv.weight") != nullptr);
  CHECK(file.find("conv.weight")->shape == Shape{6, 1, 3, 3});
  CHECK(file.find("dense.weight")->shape == Shape{3, 36});
  CHECK(file.metadata().at("precision") == "mixed");
  CHECK(file.metadata().at("step") == "7");
  CHECK(file.metadata().at("seed") == "3");
  CHECK(file.metadata().contains("version"));
  // {3, 3, 1, 6} here, {6, 1, 3, 3} there.
  const std::vector<float> weights = trainer.parameter("conv/weight");
  float there = 0;
  std::memcpy(&there, file.find("conv.weight")->data.data() + 4 * (5 * 9 + 1 * 3 + 2), 4);
  CHECK(there == weights[(1 * 3 + 2) * 6 + 5]);
  Trainer other = testing::toy_trainer(testing::toy_set(), {.seed = 77});
  const LoadReport report = other.load_weights(path);
  CHECK(report.loaded.size() == 4);
  CHECK(testing::toy_weights(other) == testing::toy_weights(trainer));
  CHECK_THROWS_WITH_AS(other.load(path), doctest::Contains("load_weights"), Error);
  trainer.save(path);
  CHECK(other.load_weights(path).unexpected.empty());
}

TEST_CASE("a file of other tensors is refused with lists of what differs, or gives what fits") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights.safetensors";
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  const std::vector<float> before = trainer.parameter("dense/weight");
  // -1.5 as BF16; the dense bias has another shape, its weight another name, and the convolution's bias is NaN.
  const std::vector<std::uint16_t> weight(6 * 9, 0xBFC0);
  const std::vector<float> bias(6, std::nanf(""));
  io::write_safetensors(path,
                        {{"conv.weight", "BF16", {6, 1, 3, 3}, std::as_bytes(std::span(weight))},
                         {"conv.bias", "F32", {6}, std::as_bytes(std::span(bias))},
                         {"dense.bias", "F32", {2, 3}, std::as_bytes(std::span(bias))},
                         {"head.weight", "F32", {6}, std::as_bytes(std::span(bias))},
                         {"bn.num_batches_tracked", "I64", {}, std::as_bytes(std::span(bias)).first(8)}},
                        {});
  const char* text =
      "1 missing (dense.weight), 1 unexpected (head.weight), 1 mismatched (dense.bias: expected F32, F16 or BF16 {3}, "
      "got F32 {2, 3})";
  const std::vector<float> conv = trainer.parameter("conv/weight");
  CHECK_THROWS_WITH_AS(trainer.load_weights(path), doctest::Contains(text), Error);
  CHECK(trainer.parameter("conv/weight") == conv);
  const LoadReport report = trainer.load_weights(path, {.strict = false});
  CHECK(report.loaded == std::vector<std::string>{"conv.weight", "conv.bias"});
  CHECK(report.missing == std::vector<std::string>{"dense.weight"});
  CHECK(report.unexpected == std::vector<std::string>{"head.weight"});
  CHECK(report.mismatched.size() == 1);
  CHECK(report.not_finite == std::vector<std::string>{"conv.bias"});
  CHECK(trainer.parameter("conv/weight") == std::vector<float>(54, -1.5F));
  CHECK(trainer.parameter("dense/weight") == before);
  LoadOptions options;
  options.ignored.insert(options.ignored.end(), {"dense.*", "head.?eight"});
  CHECK(trainer.load_weights(path, options).missing.empty());
}

TEST_CASE("patterns of one's own report no more of a checkpoint, and types that are never loaded may be in a file") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "checkpoint.safetensors";
  const std::vector<std::string> convolution{"conv.weight", "conv.bias"};
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {.precision = Precision::mixed()});
  run(trainer, 2);
  trainer.save(path);
  const io::SafetensorsFile saved(path);
  const std::vector<std::byte> bytes(6);
  std::vector<io::StoredTensor> tensors = saved.tensors();
  tensors.push_back({"dense.scale", "F8_E8M0", {6}, bytes});
  tensors.push_back({"dense.packed", "F4", {3, 4}, bytes});
  io::write_safetensors(folder.path() / "foreign", tensors, saved.metadata());
  Graph graph;
  const Tensor x = graph.input("x", {1, 6, 5, 1});
  Predictor predictor = Predictor::compile(testing::device(), graph, models::same_conv(graph.root() / "conv", x, 6, 3));
  for (const char* file : {"checkpoint.safetensors", "foreign"}) {
    CHECK(trainer.load_weights(folder.path() / file, {.ignored = {"dense*"}}).loaded == convolution);
    CHECK(predictor.load_weights(folder.path() / file, {.ignored = {"dense*"}}).loaded == convolution);
  }
  CHECK_THROWS_WITH_AS(trainer.load_weights(folder.path() / "foreign"), doctest::Contains("2 unexpected (dense."),
                       Error);
}

TEST_CASE("a tensor is read under another name that its file may have for it") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights.safetensors";
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  trainer.save_weights(path);
  const io::SafetensorsFile saved(path);
  std::vector<io::StoredTensor> tensors = saved.tensors();
  const std::vector<float> two(3, 2.0F);
  for (io::StoredTensor& tensor : tensors) {
    if (tensor.name == "conv.weight") tensor.name = "first.gamma";
    if (tensor.name == "dense.bias") tensor.data = std::as_bytes(std::span(two));
  }
  const std::vector<float> ones(3, 1.0F);
  tensors.push_back({"first.beta", "F32", {3}, std::as_bytes(std::span(ones))});
  io::write_safetensors(folder.path() / "other", tensors, {});
  const LoadOptions options{.other_names = [](const std::string& name) {
    return name == "conv.weight" ? std::vector<std::string>{"nowhere", "first.gamma"}
                                 : std::vector<std::string>{"first.beta"};
  }};
  const std::vector<float> conv = trainer.parameter("conv/weight");
  trainer.set_parameter("conv/weight", std::vector<float>(conv.size()));
  CHECK_THROWS_WITH_AS(trainer.load_weights(folder.path() / "other", options),
                       doctest::Contains("1 unexpected (first.beta)"), Error);  // the file has the model's own name
  tensors.pop_back();
  io::write_safetensors(folder.path() / "other", tensors, {});
  CHECK(std::ranges::count(trainer.load_weights(folder.path() / "other", options).loaded, "first.gamma") == 1);
  CHECK(trainer.parameter("conv/weight") == conv);
  CHECK(trainer.parameter("dense/bias") == two);
}

TEST_CASE("what a predictor does not need is passed over under the name that the file has for it") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights.safetensors";
  const std::vector<float> ones(36, 1.0F);
  const std::span<const std::byte> data = std::as_bytes(std::span(ones));
  io::write_safetensors(path, {{"w", "F32", {36}, data}, {"old.bias", "F32", {36}, data}}, {});
  Graph graph;
  const Tensor w = graph.root().parameter("w", {36}, constant(0));
  (graph.root() / "unused").parameter("bias", {36}, constant(0));
  Predictor predictor = Predictor::compile(testing::device(), graph, mul(graph.input("x", {36}), w));
  const LoadOptions options{.other_names = [](const std::string& name) {
    return name == "unused.bias" ? std::vector<std::string>{"old.bias"} : std::vector<std::string>{};
  }};
  CHECK(predictor.load_weights(path, options).unexpected.empty());
  CHECK_THROWS_AS(predictor.load_weights(path), Error);
}

TEST_CASE("numbers that a weight's type does not reach are told of as not finite") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights.safetensors";
  Trainer source = testing::toy_trainer(testing::toy_set(), {.precision = Precision::float32()});
  source.set_parameter("dense/bias", std::vector<float>{1, -70000, 2});
  source.save_weights(path);
  Precision saturating = Precision::float16();
  saturating.overflow = Overflow::saturate;
  const std::vector<std::string> bias{"dense.bias"};
  const std::vector<std::string> none;
  for (const auto& [precision, not_finite] : {std::pair{Precision::float16(), bias},
                                              {Precision::mixed(), bias},
                                              {saturating, none},
                                              {Precision::bfloat16(DType::bf16), none},
                                              {Precision::float32(), none}}) {
    CAPTURE(precision.name);
    Trainer trainer = testing::toy_trainer(testing::toy_set(), {.precision = precision});
    CHECK(trainer.load_weights(path).not_finite == not_finite);
  }
  Graph graph;
  const Tensor x = graph.input("x", {1, 36});
  Predictor predictor =
      Predictor::compile(testing::device(), graph, models::dense(graph.root() / "dense", x, 3), Precision::float16());
  CHECK(predictor.load_weights(path, {.strict = false}).not_finite == bias);
}

TEST_CASE("narrow weights saved from stochastic rounding load into f32 unchanged") {
  for (const auto& [precision, saved] :
       {std::pair{Precision::float16(), "F16"}, {Precision::bfloat16(DType::bf16), "BF16"}}) {
    CAPTURE(saved);
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "narrow.safetensors";
    Trainer narrow = testing::toy_trainer(testing::toy_set(), {.precision = precision});
    run(narrow, 20);
    narrow.save(file);
    CHECK(io::SafetensorsFile(file).find("conv.weight")->dtype == saved);
    Trainer wide = testing::toy_trainer(testing::toy_set(), {.precision = Precision::float32()});
    wide.load(file);
    CHECK(testing::toy_weights(wide) == testing::toy_weights(narrow));
  }
}

}  // namespace halfstep
