// An application's own operator: the activation "snake" (Ziyin et al. 2020), y = x + sin(a x)^2 / a with a trained
// frequency a for each unit. Its shader and that of its gradient are beside this file, in shaders/. Two networks learn
// sin(x) on [-8, 8] and are asked about [8, 16]: one with it, and one with relu.
//
//   $ bin/custom_op
//     activation   error within   error beyond
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <snake.spirv.h>
#include <snake_gradient.spirv.h>

#include <cmath>
#include <optional>

#include "models/layers.h"
#include "samples/common/command_line.h"
#include "samples/common/say.h"

using namespace halfstep;

namespace {

/// A kernel with an invocation for each four elements of a tensor {rows, columns}, whose rows are padded to fours.
CustomDispatch by_quads(const char* shader, std::map<std::string, std::vector<std::uint32_t>> spirv,
                        const TensorType& type, std::vector<CustomOperand> operands) {
  const std::int64_t quads = type.shape[0] * ((type.shape[1] + 3) / 4);
  return {.shader = shader,
          .spirv = std::move(spirv),
          .operands = std::move(operands),
          .constants = {static_cast<std::uint32_t>(type.shape[1])},
          .push = push_constants(static_cast<std::uint32_t>(quads)),
          .invocations = quads,
          .flops = 100.0 * static_cast<double>(quads)};
}

/// From x {n, c}, a {c} and the gradient of y: that of x, and the terms of that of a.
class SnakeGradient final : public CustomOperator {
 public:
  std::string name() const override { return "snake_gradient"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0], inputs[0]}; }
  CustomKernels kernels(const CustomTypes& types) const override {
    return {{by_quads("snake_gradient", halfstep_kernels::snake_gradient(), types.inputs[0],
                      {reads_input(0), reads_input(1), reads_input(2), writes_output(0), writes_output(1)})}};
  }
};

class Snake final : public CustomOperator {
 public:
  std::string name() const override { return "snake"; }

  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override {
    if (inputs.size() != 2 || inputs[0].shape.size() != 2 || inputs[1].shape != Shape{inputs[0].shape[1]}) {
      fail(name(), "expected x {n, c} and a {c}, got other shapes");
    }
    return {inputs[0]};
  }

  CustomKernels kernels(const CustomTypes& types) const override {
    return {{by_quads("snake", halfstep_kernels::snake(), types.inputs[0],
                      {reads_input(0), reads_input(1), writes_output(0)})}};
  }

  std::vector<std::optional<Tensor>> gradients(const CustomGradientCall& call) const override {
    const Tensor inputs[] = {call.inputs[0], call.inputs[1], *call.gradients[0]};
    const std::vector<Tensor> parts = apply_operator(std::make_shared<SnakeGradient>(), inputs);
    return {parts[0], sum(parts[1], {0})};
  }
};

Tensor snake(const Scope& scope, Tensor x) {
  const Tensor inputs[] = {x, scope.parameter("a", {x.dim(1)}, uniform(0.5F, 1.5F))};
  return apply_operator(std::make_shared<Snake>(), inputs)[0];
}

struct Options {
  std::int64_t steps = 1500;
  std::string precision = "mixed";
  std::uint64_t seed = 42;
  std::string device;
};

constexpr std::int64_t batch = 256;
constexpr std::int64_t samples_of_set = 4096;
constexpr float inner = 8;   // trained on [-inner, inner]
constexpr float outer = 16;  // and asked about up to this

Tensor network(const Scope& scope, Tensor x, bool own) {
  for (const char* layer : {"hidden1", "hidden2"}) {
    x = models::dense(scope / layer, x, 64, models::Before::relu);
    x = own ? snake(scope / layer, x) : relu(x);
  }
  return models::dense(scope / "y", x, 1);
}

/// The root of the mean square of the error on [low, high].
double error_on(Predictor& predictor, float low, float high) {
  std::vector<float> xs(batch);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    xs[i] = low + (high - low) * static_cast<float>(i) / static_cast<float>(batch - 1);
  }
  const std::vector<float> ys = predictor.run({{"x", std::span<const float>(xs)}});
  double squares = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) squares += std::pow(ys[i] - std::sin(xs[i]), 2);
  return std::sqrt(squares / static_cast<double>(batch));
}

/// Trains a network and prints what it has learned; false where it was interrupted.
bool fit(const Device& device, const Dataset& set, bool own, const Options& options) {
  Graph graph;
  const Tensor x = graph.input("x", {batch, 1});
  const Tensor y = graph.input("y", {batch, 1});
  const Tensor estimate = network(graph.root(), x, own);
  Trainer trainer = Trainer::compile(device, graph,
                                     {.loss = mse_loss(estimate, y),
                                      .optimizer = Adam{.rate = Schedule::cosine(5e-3F, 0, options.steps)},
                                      .precision = Precision::level(options.precision),
                                      .seed = options.seed,
                                      .feed = Feed{.inputs = {{.input = x}, {.input = y}}},
                                      .training_set = &set});
  for (std::int64_t step = 0; step < options.steps && !interrupted(); ++step) trainer.step();
  trainer.finish();
  Predictor predictor = Predictor::compile(trainer, graph, estimate);
  samples::say("{:>12}   {:12.4f}   {:12.4f}\n", own ? "snake" : "relu", error_on(predictor, -inner, inner),
               error_on(predictor, inner, outer));
  return !interrupted();
}

int run(const Options& options) {
  std::vector<float> xs;
  std::vector<float> ys;
  for (std::int64_t i = 0; i < samples_of_set; ++i) {
    xs.push_back(inner * (2 * (static_cast<float>(i) + 0.5F) / static_cast<float>(samples_of_set) - 1));
    ys.push_back(std::sin(xs.back()));
  }
  const Dataset set = Dataset::of("sine", {Field::borrow<float>("x", {1}, xs), Field::borrow<float>("y", {1}, ys)});
  const Device device = Device::open(options.device);
  watch_interrupts();
  samples::say("  activation   error within   error beyond\n");
  for (const bool own : {false, true}) {
    if (!fit(device, set, own, options)) return samples::exit_signal + interrupt_signal();
  }
  return samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("An application's own operator: networks with the activation snake, and with relu, learn a sine.");
  Options options;
  app.add_option("--steps", options.steps, "Steps to train")
      ->transform(samples::whole_number(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "What is computed in 16 bits: see Precision")
      ->check(CLI::IsMember(Precision::names()))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the initial weights and the order of samples")->capture_default_str();
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them")
      ->group(samples::running_group);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
