// Groups with optimizers of their own, and optimizers that an application writes in operators.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "train/pulled_tensors.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::PulledTensors;

std::vector<float> all(std::size_t count, float value) {
  return std::vector<float>(count, value);
}

/// The options of a training of PulledTensors, by default in f32.
TrainerOptions options(Optimizer optimizer, std::vector<ParameterGroup> groups,
                       Precision precision = Precision::float32()) {
  TrainerOptions result;  // PulledTensors sets the loss
  result.optimizer = std::move(optimizer);
  result.groups = std::move(groups);
  result.precision = std::move(precision);
  return result;
}

/// SGD with the scale in its rate, which leaves parameters of one axis to Adam.
class LeavesVectors final : public UpdateRule {
 public:
  std::string name() const override { return "leaves_vectors"; }
  const Schedule& rate() const override { return own_->rate(); }
  float weight_decay() const override { return own_->weight_decay(); }
  void check() const override { own_->check(); }
  std::vector<std::string> states() const override { return own_->states(); }
  UpdateKernel kernel(const UpdateCall& call) const override { return own_->kernel(call); }
  bool takes_scale_in_rate() const override { return true; }
  const Optimizer* substitute(std::string_view, const Shape& shape) const override {
    return shape.size() == 1 ? &vectors_ : nullptr;
  }

 private:
  Optimizer own_ = Sgd{};
  Optimizer vectors_ = Adam{};
};

/// One step with the same gradient for every element of "a" {6}, "b" {5} and "c" {3, 4}.
void pull(PulledTensors& tensors, float value) {
  tensors.step({{"a", all(6, value)}, {"b", all(5, value)}, {"c", all(12, value)}});
}

const std::vector<testing::PulledTensor> three{{"a", {6}, 2}, {"b", {5}, 2}, {"c", {3, 4}, 2}};

/// A weight of 2 after steps of Adam with these gradients, in double.
double adam(const Adam& adam, const std::vector<float>& gradients) {
  double w = 2;
  double m = 0;
  double v = 0;
  const auto beta1 = static_cast<double>(adam.beta1);
  const auto beta2 = static_cast<double>(adam.beta2);
  const std::vector<float>& rates = adam.rate.rates;
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    const auto g = static_cast<double>(gradients[t]);
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const auto n = static_cast<double>(t + 1);
    w -= static_cast<double>(rates[std::min(t, rates.size() - 1)]) * (m / (1 - std::pow(beta1, n))) /
         (std::sqrt(v / (1 - std::pow(beta2, n))) + static_cast<double>(adam.epsilon));
  }
  return w;
}

/// Likewise of SGD with momentum.
double sgd(const Sgd& sgd, const std::vector<float>& gradients) {
  double w = 2;
  double v = 0;
  for (const float gradient : gradients) {
    v = static_cast<double>(sgd.momentum) * v + static_cast<double>(gradient);
    w -= static_cast<double>(sgd.rate.rates[0]) * v;
  }
  return w;
}

/// The values of a tensor of F32.
std::vector<float> floats(const io::StoredTensor& tensor) {
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

const std::vector<float> gradients{1, -0.5F, 0.25F, 2, 0.125F, -1, 0.5F};

/// LARS, You et al. 2017, with momentum in the form of a rule in operators: the momentum of the gradient, times the
/// ratio of the norms of weight and momentum; and an average of the weight, which nothing reads.
class Lars final : public UpdateRule {
 public:
  std::string name() const override { return "lars"; }
  const Schedule& rate() const override { return rate_; }
  float weight_decay() const override { return 0.25F; }
  void check() const override {}
  std::vector<std::string> states() const override { return states_; }
  bool in_operators() const override { return true; }

  UpdateResult update(const UpdateTensors& now) const override {
    const Tensor momentum = add(scale(now.states[0], 0.75F), now.gradient);
    const auto norm = [](Tensor x) { return sqrt(sum(mul(x, x))); };
    UpdateResult result{.direction = mul(momentum, div(norm(now.weight), norm(momentum))),
                        .states = {momentum, add(scale(now.states[1], 0.75F), scale(now.weight, 0.25F))}};
    if (change_) change_(result, now);
    return result;
  }

  std::vector<std::string> states_{"momentum", "past"};
  std::function<void(UpdateResult&, const UpdateTensors&)> change_{};

 private:
  Schedule rate_ = 0.0625F;
};

}  // namespace

TEST_CASE("groups follow the formulas of their own optimizers, with their own schedules and betas") {
  const Adam trainers{.rate = 0.03F, .beta1 = 0.8F, .beta2 = 0.9F};
  const Adam groups{.rate = Schedule::linear(0.05F, 0.01F, 5), .beta1 = 0.5F, .beta2 = 0.99F};
  const Sgd last{.rate = 0.0625F, .momentum = 0.5F};
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::bfloat16()}) {
    CAPTURE(precision.name);
    if (precision.name == "mixed") precision.loss_scale = LossScale::fixed(16);
    PulledTensors tensors(
        three,
        options(trainers, {{.pattern = "b", .optimizer = groups}, {.pattern = "c", .optimizer = last}}, precision));
    for (const float gradient : gradients) {
      // Steps without an update move neither schedules nor bias corrections.
      pull(tensors, std::numeric_limits<float>::infinity());
      pull(tensors, gradient);
    }
    const auto check = [&](const char* name, double wanted) {
      CAPTURE(name);
      for (const float w : tensors.trainer().parameter(name)) {
        CHECK(static_cast<double>(w) == doctest::Approx(wanted).epsilon(2e-6));
      }
    };
    check("a", adam(trainers, gradients));
    check("b", adam(groups, gradients));
    check("c", sgd(last, gradients));
    CHECK(tensors.trainer().report().rate == 0.03F);
  }
}

TEST_CASE("a group's rate and decay apply to its own optimizer, and frozen groups beside it stay") {
  PulledTensors tensors(
      three,
      options(Adam{}, {{.pattern = "a", .frozen = true},
                       {.pattern = "b", .rate = 2, .optimizer = Sgd{.rate = 0.25F, .weight_decay = 0.5F}},
                       {.pattern = "c", .weight_decay = 0, .optimizer = Sgd{.rate = 0.25F, .weight_decay = 0.5F}}}));
  CHECK(tensors.trainer().inspect().summary().optimizer_bytes == 0);
  pull(tensors, 1);
  CHECK(tensors.trainer().parameter("a") == all(6, 2));
  CHECK(tensors.trainer().parameter("b") == all(5, 2 - 2 * 0.25F * (1 + 0.5F * 2)));
  CHECK(tensors.trainer().parameter("c") == all(12, 2 - 0.25F));
}

TEST_CASE("groups of several optimizers take the memory of their states, and draw their own noise") {
  const Precision precision = [] {
    Precision result = Precision::float16();
    result.moments = DType::f16;
    result.rounding.optimizer = Rounding::stochastic;
    result.rounding.weights = Rounding::nearest;
    return result;
  }();
  const std::vector<testing::PulledTensor> tensors{{"a", {1024}}, {"b", {1024}}, {"c", {1024}}, {"d", {1024}}};
  const Sgd momentum{.rate = 0x1p-6F, .momentum = 0.75F};
  const RmsProp centered{.momentum = 0.5F, .centered = true};
  PulledTensors trained(tensors, options(Adam{},
                                         {{.pattern = "b", .optimizer = momentum},
                                          {.pattern = "c", .optimizer = centered},
                                          {.pattern = "d", .optimizer = momentum}},
                                         precision));
  CHECK(trained.trainer().inspect().summary().optimizer_bytes == 1024 * (2 + 1 + 3 + 1) * 2);
  const std::vector<float> pull = all(1024, 0.1F);
  for (int i = 0; i < 3; ++i) trained.step({{"a", pull}, {"b", pull}, {"c", pull}, {"d", pull}});
  const TemporaryFolder folder;
  trained.trainer().save(folder.path() / "checkpoint");
  const io::SafetensorsFile file(folder.path() / "checkpoint");
  // Elements that are all alike but for the noise that they were rounded with: whether each is above the least.
  const auto rounded_up = [&](const std::string& name) {
    std::vector<std::uint16_t> bits(1024);
    std::memcpy(bits.data(), file.find(name)->data.data(), 2048);
    std::vector<bool> result;
    for (const std::uint16_t value : bits) result.push_back(value != *std::ranges::min_element(bits));
    return result;
  };
  const std::vector<std::string> names{"a.first_moment",      "a.second_moment", "b.momentum",
                                       "c.gradient_variance", "c.momentum",      "d.momentum"};
  for (const std::string& one : names) {
    for (const std::string& other : names) {
      if (one != other) CHECK(rounded_up(one) != rounded_up(other));
    }
  }
}

TEST_CASE("an optimizer that an application writes in operators follows its formula") {
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::bfloat16()}) {
    CAPTURE(precision.name);
    if (precision.name == "mixed") precision.loss_scale = LossScale::fixed(16);
    PulledTensors tensors(three, options(Optimizer(std::make_shared<Lars>()), {}, precision));
    double w = 2;
    double m = 0;
    double past = 0;
    for (const float gradient : gradients) {
      pull(tensors, gradient);
      past = 0.75 * past + 0.25 * w;
      m = 0.75 * m + static_cast<double>(gradient);
      // Elements are all alike: the ratio of norms is that of elements.
      w -= 0.0625 * (m * std::abs(w) / std::abs(m) + 0.25 * w);
    }
    for (const char* name : {"a", "b", "c"}) {
      for (const float got : tensors.trainer().parameter(name)) {
        CHECK(static_cast<double>(got) == doctest::Approx(w).epsilon(5e-6));
      }
    }
    const TemporaryFolder folder;
    tensors.trainer().save(folder.path() / "checkpoint");
    const io::SafetensorsFile file(folder.path() / "checkpoint");
    for (const auto& [name, wanted] : {std::pair{"c.momentum", m}, std::pair{"c.past", past}}) {
      REQUIRE(file.find(name) != nullptr);
      for (const float value : floats(*file.find(name)))
        CHECK(static_cast<double>(value) == doctest::Approx(wanted).epsilon(5e-6));
    }
  }
}

TEST_CASE("what an application's own operators get wrong is said when they are compiled") {
  const auto refusal = [](std::function<void(UpdateResult&, const UpdateTensors&)> change) -> std::string {
    const auto rule = std::make_shared<Lars>();
    rule->change_ = std::move(change);
    try {
      PulledTensors(three, options(Optimizer(rule), {}));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal({}).empty());
  CHECK(refusal([](UpdateResult& result, const UpdateTensors&) { result.states.pop_back(); }) ==
        "[lars] expected the next values of 2 states, got 1");
  CHECK(refusal([](UpdateResult& result, const UpdateTensors&) {
          result.direction = sum(result.direction);
        }).starts_with("[lars] expected a direction as f32 {6}, got f32 {}"));
  CHECK(refusal([](UpdateResult& result, const UpdateTensors&) {
          result.states[1] = cast(result.states[1], DType::f16);
        }).starts_with("[lars] expected the next 'past' as f32 {6}, got f16 {6}"));
  CHECK(refusal([](UpdateResult& result, const UpdateTensors&) {
          result.direction = {};
        }).starts_with("[lars] expected a direction, got a tensor that was never set"));
  CHECK(refusal([](UpdateResult& result, const UpdateTensors& now) {
          result = {.direction = now.gradient, .states = now.states};
        }).empty());
}

TEST_CASE("optimizers of groups that cannot be are refused") {
  const auto refused = [](std::vector<ParameterGroup> groups, const char* text) {
    CHECK_THROWS_WITH_AS(PulledTensors(three, options(Sgd{}, std::move(groups))), doctest::Contains(text), Error);
  };
  refused({{.pattern = "a", .frozen = true, .optimizer = Adam{}}}, "no optimizer for the frozen group 'a'");
  refused({{.pattern = "a", .optimizer = Adam{.beta1 = 1}}}, "expected beta1 to be in [0, 1), got 1");
  refused({{.pattern = "a", .optimizer = Sgd{.rate = -1.0F}}}, "expected rate");
  TrainerOptions in_rate = options(Sgd{}, {{.pattern = "a", .optimizer = Adam{}}}, Precision::mixed());
  in_rate.precision.loss_scale = {.kind = LossScale::Kind::fixed, .initial = 16, .in_rate = true};
  CHECK_THROWS_WITH_AS(PulledTensors(three, in_rate), doctest::Contains("got adam with a fixed loss scale"), Error);
  in_rate.groups = {};
  in_rate.optimizer = Optimizer(std::make_shared<LeavesVectors>());
  CHECK_THROWS_WITH_AS(PulledTensors(three, in_rate), doctest::Contains("got adam with a fixed loss scale"), Error);
}

}  // namespace halfstep
