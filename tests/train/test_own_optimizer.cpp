// An optimizer of the application, with its own kernel.
#include <doctest/doctest.h>

#include <functional>

#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "train/small_training.h"
#include "vk/shader/shaders.h"

namespace halfstep {
namespace {

/// SGD with momentum under other names. Its kernel's SPIR-V is the library's, as if it were compiled elsewhere.
class HeavyBall final : public UpdateRule {
 public:
  std::string name() const override { return name_; }
  const Schedule& rate() const override { return rate_; }
  float weight_decay() const override { return 0; }
  void check() const override {}
  std::vector<std::string> states() const override { return states_; }

  UpdateKernel kernel(const UpdateCall& call) const override {
    UpdateKernel kernel{
        .shader = "heavy_ball", .constants = {true, false, false}, .numbers = {call.rate, 0.5F, call.weight_decay}};
    for (const char* storage : {"f32", "f16", "packed"}) {
      const auto words = vk::find_shader(std::string("sgd.") + storage).words;
      kernel.spirv[storage].assign(words.begin(), words.end());
    }
    if (change_) change_(kernel);
    return kernel;
  }

  std::string name_ = "heavy_ball";
  std::vector<std::string> states_{"velocity"};
  std::function<void(UpdateKernel&)> change_{};

 private:
  Schedule rate_ = 0.125F;
};

/// The error of compiling with a modified HeavyBall.
std::string refusal(const std::function<void(HeavyBall&)>& change) {
  const auto rule = std::make_shared<HeavyBall>();
  change(*rule);
  try {
    testing::Pull(4, 1, Optimizer(rule), Precision::float32());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string kernel_refusal(const std::function<void(UpdateKernel&)>& change) {
  return refusal([&](HeavyBall& rule) { rule.change_ = change; });
}

}  // namespace

TEST_CASE("an application's own optimizer updates weights with its own kernel, to the same bits as the library's") {
  for (const Precision& precision : {Precision::float32(), Precision::float16()}) {
    CAPTURE(precision.name);
    testing::Pull own(9, 2, Optimizer(std::make_shared<HeavyBall>()), precision);
    testing::Pull sgd(9, 2, Sgd{.rate = 0.125F, .momentum = 0.5F}, precision);
    own.run(0.3F, 5);
    sgd.run(0.3F, 5);
    CHECK(own.weights() == sgd.weights());
    CHECK(own.weights()[8] != 2);
  }
}

TEST_CASE("checkpoints keep the states of an application's own optimizer by its names, and resume") {
  const TemporaryFolder folder;
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  const testing::ToyOptions options{.optimizer = Optimizer(std::make_shared<HeavyBall>())};
  Trainer whole = testing::toy_trainer(set, options);
  for (int i = 0; i < 4; ++i) whole.step();
  whole.save(folder.path() / "middle");
  for (int i = 0; i < 4; ++i) whole.step();
  const io::SafetensorsFile file(folder.path() / "middle");
  CHECK(file.metadata().at("optimizer") == "heavy_ball");
  REQUIRE(file.find("conv.weight.velocity") != nullptr);
  CHECK(file.find("conv.weight.velocity")->shape == file.find("conv.weight")->shape);
  Trainer resumed = testing::toy_trainer(set, options);
  resumed.load(folder.path() / "middle");
  for (int i = 0; i < 4; ++i) resumed.step();
  CHECK(testing::toy_weights(resumed) == testing::toy_weights(whole));
  Trainer other = testing::toy_trainer(set, {.optimizer = Sgd{.momentum = 0.5F}});
  CHECK_THROWS_WITH_AS(other.load(folder.path() / "middle"),
                       doctest::Contains("expected a checkpoint of sgd, got one of heavy_ball"), Error);
}

TEST_CASE("weights of a checkpoint load into a trainer of another optimizer, whatever states its own has") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "checkpoint";
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  const Optimizer optimizers[] = {Adam{},    Lion{},
                                  Muon{},    RmsProp{.momentum = 0.5F, .centered = true},
                                  RmsProp{}, Optimizer(std::make_shared<HeavyBall>())};
  for (const Optimizer& optimizer : optimizers) {
    CAPTURE(optimizer->name());
    Trainer trainer = testing::toy_trainer(
        set, {.optimizer = optimizer, .change = [](TrainerOptions& options) { options.ema_decay = 0.5F; }});
    for (int i = 0; i < 2; ++i) trainer.step();
    trainer.save(path);
    Trainer other = testing::toy_trainer(set, {.optimizer = Sgd{}, .seed = 77});
    const LoadReport report = other.load_weights(path);
    CHECK(report.loaded.size() == 4);
    CHECK(report.unexpected.empty());
    CHECK(testing::toy_weights(other) == testing::toy_weights(trainer));
  }
}

TEST_CASE("a tensor of a file that is neither the model's nor a state of a checkpoint's weight is unexpected") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "checkpoint";
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  Trainer trainer = testing::toy_trainer(set, {.optimizer = Sgd{.momentum = 0.5F}});
  trainer.save(path);
  const io::SafetensorsFile file(path);
  const std::vector<float> values(6);
  const auto load = [&](const char* name, const io::Metadata& metadata) {
    std::vector<io::StoredTensor> tensors = file.tensors();
    if (*name != '\0') tensors.push_back({name, "F32", {6}, std::as_bytes(std::span(values))});
    io::write_safetensors(folder.path() / "changed", tensors, metadata);
    return trainer.load_weights(folder.path() / "changed");
  };
  CHECK(load("conv.bias.velocity", file.metadata()).unexpected.empty());
  for (const char* name : {"head.momentum", "dense.weight.momentum2"}) {
    CHECK_THROWS_WITH_AS(load(name, file.metadata()), doctest::Contains("1 unexpected ("), Error);
  }
  CHECK_THROWS_WITH_AS(load("", io::Metadata{{"format", "pt"}}), doctest::Contains("4 unexpected ("), Error);
}

TEST_CASE("what is wrong with an application's own optimizer is said when it is compiled") {
  CHECK(refusal([](HeavyBall&) {}).empty());
  CHECK_THROWS_WITH_AS(Optimizer(nullptr), "[optimizer] expected an update rule, got none", Error);
  for (const std::vector<std::string>& states : {std::vector<std::string>{"average"}, {"v", "v"}, {""}}) {
    const std::string text = refusal([&](HeavyBall& rule) { rule.states_ = states; });
    CHECK(text.find("[heavy_ball] expected states of names of their own") == 0);
  }
  CHECK(refusal([](HeavyBall& rule) { rule.states_.resize(17); }) == "[heavy_ball] expected at most 16 states, got 17");
  CHECK(refusal([](HeavyBall& rule) { rule.states_ = {"m\xff"}; }).find("[trainer] expected names in UTF-8") == 0);
  CHECK(refusal([](HeavyBall& rule) { rule.name_ = "b\xff"; }) == "[trainer] expected names in UTF-8, got 'b\\xff'");
  CHECK(kernel_refusal([](UpdateKernel& kernel) { kernel.spirv.erase("f32"); }) ==
        "[optimizer] expected SPIR-V of heavy_ball for the storage type f32, got f16, packed");
  CHECK(kernel_refusal([](UpdateKernel& kernel) {
          kernel.spirv["f32"] = {1, 2, 3};
        }).find("expected SPIR-V") != std::string::npos);
  CHECK(kernel_refusal([](UpdateKernel& kernel) { kernel.spirv["f32"].resize(6); }).find("truncated") !=
        std::string::npos);
  // Without its OpFunctionEnd, which drivers do not check.
  CHECK(kernel_refusal([](UpdateKernel& kernel) {
          kernel.spirv["f32"].pop_back();
        }).find("[shader] expected valid SPIR-V for Vulkan 1.1 of heavy_ball.f32, got a fault: ") == 0);
  CHECK(kernel_refusal([](UpdateKernel& kernel) { kernel.spirv.clear(); }) ==
        "[shader] expected a shader variant of the library, got heavy_ball.f32. Hint: a library may be built without "
        "some shaders: HALFSTEP_WITHOUT");
  CHECK(kernel_refusal([](UpdateKernel& kernel) { kernel.numbers.resize(40'000); }).find("push constants") !=
        std::string::npos);
}

TEST_CASE("an application's own optimizer: how weights of 16 bits are stored does not concern those in f32") {
  Precision precision = testing::plain(Precision::autocast());
  precision.overflow = Overflow::saturate;
  testing::Pull pull(4, 1, Optimizer(std::make_shared<HeavyBall>()), precision);
  pull.step(1);
  CHECK(pull.weights() == std::vector<float>(4, 1 - 0.125F));
}

}  // namespace halfstep
