// An application's own optimizer: momentum that is cautious (Liang et al. 2024), which moves a weight only where the
// momentum and the gradient have the same sign. Once with a kernel of its own, in shaders/cautious.comp, and once
// written in operators, which needs no shader; both beside the library's SGD, on two spirals.
//
//   $ bin/custom_optimizer
//     optimizer                 loss   accuracy
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <cautious.spirv.h>

#include <cmath>
#include <numbers>

#include "models/layers.h"
#include "samples/common/command_line.h"
#include "samples/common/say.h"

using namespace halfstep;

namespace {

class Cautious final : public UpdateRule {
 public:
  enum class Form : bool { kernel, operators };

  Cautious(Schedule rate, float momentum, Form form) : rate_(std::move(rate)), momentum_(momentum), form_(form) {}

  std::string name() const override { return "cautious"; }
  const Schedule& rate() const override { return rate_; }
  float weight_decay() const override { return 0; }
  void check() const override {
    if (momentum_ < 0 || momentum_ >= 1) fail(name(), "expected a momentum in [0, 1), got another");
  }
  std::vector<std::string> states() const override { return {"momentum"}; }

  UpdateKernel kernel(const UpdateCall& call) const override {
    return {.shader = "cautious",
            .constants = {},
            .numbers = {call.rate, momentum_, call.weight_decay},
            .spirv = halfstep_kernels::cautious()};
  }

  bool in_operators() const override { return form_ == Form::operators; }
  UpdateResult update(const UpdateTensors& now) const override {
    const Tensor momentum = add(scale(now.states[0], momentum_), now.gradient);
    const Tensor zero = scale(momentum, 0);
    return {.direction = where(greater(mul(momentum, now.gradient), zero), momentum, zero), .states = {momentum}};
  }

 private:
  Schedule rate_;
  float momentum_;
  Form form_;
};

struct Options {
  std::int64_t steps = 600;
  float rate = 0.05F;
  std::string precision = "mixed";
  std::uint64_t seed = 42;
  std::string device;
};

constexpr std::int64_t batch = 128;
constexpr int points = 4096;

/// Two spirals, one turned by half a turn: points {2} and labels.
Dataset spirals() {
  std::vector<float> positions;
  std::vector<std::uint8_t> labels;
  for (int i = 0; i < points; ++i) {
    const double along = (i / 2 + 0.5) / (points / 2);
    const double angle = along * 3 * std::numbers::pi + i % 2 * std::numbers::pi;
    positions.push_back(static_cast<float>(2 * along * std::cos(angle)));
    positions.push_back(static_cast<float>(2 * along * std::sin(angle)));
    labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return Dataset::of("spirals",
                     {Field::own("point", {2}, std::move(positions)), Field::own("spiral", {}, std::move(labels))});
}

/// Trains with an optimizer, and prints the means over the last tenth; false where it was interrupted.
bool fit(const Device& device, const Dataset& set, const char* name, const Optimizer& optimizer,
         const Options& options) {
  Graph graph;
  const Tensor point = graph.input("point", {batch, 2});
  const Tensor spiral = graph.input("spiral", {batch}, DType::u32);
  Tensor x = point;
  for (const char* layer : {"hidden1", "hidden2"}) {
    x = relu(models::dense(graph.root() / layer, x, 64, models::Before::relu));
  }
  const Tensor logits = models::dense(graph.root() / "logits", x, 2);
  Trainer trainer = Trainer::compile(device, graph,
                                     {.loss = cross_entropy(logits, spiral),
                                      .metrics = {{"accuracy", accuracy(logits, spiral)}},
                                      .optimizer = optimizer,
                                      .precision = Precision::level(options.precision),
                                      .seed = options.seed,
                                      .feed = Feed{.inputs = {{.input = point}, {.input = spiral}}},
                                      .training_set = &set});
  for (std::int64_t step = 0; step < options.steps && !interrupted(); ++step) {
    if (step == options.steps - (options.steps + 9) / 10) trainer.take_totals();
    trainer.step();
  }
  const StepTotals totals = trainer.take_totals();
  if (totals.steps == 0) return !interrupted();
  samples::say("{:>24} {:8.4f} {:9.2f}%\n", name, totals.mean_loss, 100 * totals.mean_metrics.at("accuracy"));
  return !interrupted();
}

int run(const Options& options) {
  constexpr float momentum = 0.9F;
  const Dataset set = spirals();
  const Device device = Device::open(options.device);
  const auto cautious = [&](Cautious::Form form) {
    return Optimizer(std::make_shared<Cautious>(options.rate, momentum, form));
  };
  const std::pair<const char*, Optimizer> optimizers[] = {
      {"sgd", Sgd{.rate = options.rate, .momentum = momentum}},
      {"cautious, by a kernel", cautious(Cautious::Form::kernel)},
      {"cautious, in operators", cautious(Cautious::Form::operators)}};
  watch_interrupts();
  samples::say("               optimizer     loss   accuracy\n");
  for (const auto& [name, optimizer] : optimizers) {
    if (!fit(device, set, name, optimizer, options)) return samples::exit_signal + interrupt_signal();
  }
  return samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("An application's own optimizer: cautious momentum beside SGD, on two spirals.");
  Options options;
  app.add_option("--steps", options.steps, "Steps to train")
      ->transform(samples::whole_number(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--learning-rate", options.rate, "Of all three")
      ->check(samples::number_above(0, 10))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "What is computed in 16 bits: see Precision")
      ->check(CLI::IsMember(Precision::names()))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the initial weights and the order of points")->capture_default_str();
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them")
      ->group(samples::running_group);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
