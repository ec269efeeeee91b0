// Demonstrates the effects of half precision. Shaders compute each line on the device; the lines build on each other:
//
//   $ bin/numerics_tour
//   0.0004 + 0.25 - 0.25 in f16                                   expected 0.00048828   got 0.00048828
//   ...
//   all as expected on llvmpipe (LLVM 15.0.6, 256 bits)
//
// The output is the same on every device. Exits with 1 if any line differs.
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "samples/common/command_line.h"

using namespace halfstep;

namespace {

/// f16 throughout, with no loss scale.
Precision plain(Precision precision = Precision::float16()) {
  precision.rounding.weights = Rounding::nearest;
  precision.loss_scale = LossScale::none();
  return precision;
}

Precision plain_f32() {
  return Precision::float32();
}

/// Prints the expected value beside the actual one, and counts the lines that differ.
class Tour {
 public:
  explicit Tour(const Device& device) : device_(device) {}

  /// The value of `expression`, a function of inputs {1}, computed on the device.
  float value(const Precision& precision, std::vector<float> inputs,
              const std::function<Tensor(const std::vector<Tensor>&)>& expression) {
    Graph graph;
    std::vector<Tensor> tensors;
    std::map<std::string, Values> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = fmt::format("x{}", i);
      tensors.push_back(graph.input(name, {1}));
      values[name] = std::span<const float>(&inputs[i], 1);
    }
    return first(precision, graph, values, expression(tensors));
  }

  /// The first element of `result`, given values for the graph's inputs.
  float first(const Precision& precision, Graph& graph, const std::map<std::string, Values>& values, Tensor result) {
    const Tensor w = graph.root().parameter("w", {1}, constant(0));
    Trainer trainer = Trainer::compile(device_, graph,
                                       {.loss = sum(w), .metrics = {{"result", sum(result)}}, .precision = precision});
    trainer.step(values);
    trainer.finish();
    return trainer.report().metrics.at("result");
  }

  /// Weights after `steps` updates of -gradient each.
  std::vector<float> trained(const Precision& precision, const Optimizer& optimizer, float gradient, std::int64_t count,
                             std::int64_t steps) {
    Graph graph;
    const Tensor w = graph.root().parameter("w", {count}, constant(0));
    Trainer trainer = Trainer::compile(
        device_, graph, {.loss = scale(sum(w), gradient), .optimizer = optimizer, .precision = precision});
    for (std::int64_t i = 0; i < steps; ++i) trainer.step(std::map<std::string, Values>{});
    trainer.finish();
    return trainer.parameter("w");
  }

  /// Compares both numbers as they are printed: with five significant digits, or with seven decimals.
  void line(const std::string& what, float expected, float got) {
    compare(what, fmt::format("{:.5g}", expected), fmt::format("{:.5g}", got + 0.0F));
  }
  void line_to_seven_places(const std::string& what, float expected, float got) {
    compare(what, fmt::format("{:.7f}", expected), fmt::format("{:.7f}", got + 0.0F));
  }

  void near(const std::string& what, float expected, float allowed, float got) {
    print(what, fmt::format("{} +- {}", expected, allowed), fmt::format("{:.7g}", got),
          std::abs(got - expected) <= allowed);
  }

  int differences() const { return differences_; }

 private:
  void compare(const std::string& what, const std::string& expected, const std::string& got) {
    print(what, expected, got, expected == got);
  }

  void print(const std::string& what, const std::string& expected, const std::string& got, bool same) {
    fmt::print("{:<60} expected {:<14} got {:<14}{}\n", what, expected, got, same ? "" : " DIFFERENT");
    if (!same) ++differences_;
  }

  Device device_;
  int differences_ = 0;
};

/// Near 0.25, f16 numbers are 2^-12 apart: any sum is rounded to a multiple of that.
void absorption(Tour& tour) {
  const auto beside = [](const std::vector<Tensor>& x) { return sub(add(x[0], x[1]), x[1]); };
  tour.line("0.0004 + 0.25 - 0.25 in f16", 0.00048828F, tour.value(plain(), {0.0004F, 0.25F}, beside));
  const std::pair<float, float> table[] = {
      {0.2F, 0.1999512F}, {0.02F, 0.0200195F}, {0.002F, 0.0019531F}, {0.0002F, 0.0002441F}, {0.0001F, 0}};
  for (const auto& [x, expected] : table) {
    tour.line_to_seven_places(fmt::format("{} + 0.25 - 0.25 in f16", x), expected,
                              tour.value(plain(), {x, 0.25F}, beside));
  }
}

/// Repeated small updates have no effect once a step is less than half of f16's spacing. Stochastic rounding preserves
/// them on average.
void small_steps(Tour& tour) {
  constexpr std::int64_t steps = 10000;
  const Sgd optimizer{.rate = 0.0001F};
  tour.line("0.0001 added 10,000 times in f16, to nearest", 0.25F, tour.trained(plain(), optimizer, -1, 1, steps)[0]);
  Precision stochastic = plain();
  stochastic.rounding.weights = Rounding::stochastic;
  const std::vector<float> lanes = tour.trained(stochastic, optimizer, -1, 20, steps);
  tour.near("the same stochastically: the mean of twenty lanes", 1, 0.014F,
            std::accumulate(lanes.begin(), lanes.end(), 0.0F) / 20);
  const std::vector<float> wide = tour.trained(plain_f32(), optimizer, -1, 1, steps);
  tour.near("the same in f32", 1, 0.0001F, wide[0]);
}

/// 65,536 ones, summed by an operator that accumulates in f32 and stores f16, and by one that accumulates in f16.
void long_sums(Tour& tour) {
  constexpr std::int64_t count = 65536;
  const std::vector<float> ones(count, 1.0F);
  const auto sum_of = [&](const Precision& precision) {
    Graph graph;
    const Tensor x = graph.input("x", {count});
    return tour.first(precision, graph, {{"x", std::span<const float>(ones)}}, sum(x));
  };
  // A depthwise convolution adds tap after tap and rounds after each; the next one continues from its result.
  const auto one_by_one = [&](const Precision& precision) {
    constexpr std::int64_t taps = 4096;
    Graph graph;
    const Tensor x = graph.input("x", {1, 1, taps, 2});
    const Tensor kernel = graph.input("kernel", {1, taps, 1, 2});
    Tensor sums = reshape(conv2d(x, kernel, {.groups = 2}), {2});
    for (std::int64_t i = 1; i < count / taps; ++i) sums = reshape(conv2d(x, kernel, {.groups = 2}, sums), {2});
    const std::span<const float> both = std::span(ones).first(2 * taps);
    return tour.first(precision, graph, {{"x", both}, {"kernel", both}}, sums) / 2;
  };
  Precision saturating = plain();
  saturating.overflow = Overflow::saturate;
  Precision partials = plain();
  partials.partials.conv2d = DType::f16;
  tour.line("65,536 ones: the exact sum cast to f16", std::numeric_limits<float>::infinity(), sum_of(plain()));
  tour.line("65,536 ones: the same, saturating", 65504, sum_of(saturating));
  tour.line("65,536 ones: added one by one in f16", 2048, one_by_one(partials));
  tour.line("65,536 ones: in f32", 65536, sum_of(plain_f32()));
}

void single_numbers(Tour& tour) {
  const auto same = [](const std::vector<Tensor>& x) { return scale(x[0], 1); };
  const auto both = [](const std::vector<Tensor>& x) { return add(x[0], x[1]); };
  tour.line("1 + 0.0001 in f16", 1, tour.value(plain(), {1, 0.0001F}, both));
  tour.line("1 + 0.0001 in f32", 1.0001F, tour.value(plain_f32(), {1, 0.0001F}, both));
  tour.line("6.6666e-5 in f16, next to its smallest normal number", 6.6638e-5F,
            tour.value(plain(), {6.6666e-5F}, same));
  tour.line("Adam's epsilon, 1e-8, in f16", 0, tour.value(plain(), {1e-8F}, same));
}

/// Hyperparameters stay in f32, and a loss scale keeps gradients in f16's range.
void small_gradients(Tour& tour) {
  tour.line("Adam with epsilon 1e-8 and a gradient of 0 moves a weight by", 0,
            tour.trained(plain(), Adam{}, 0, 1, 1)[0]);
  const Sgd optimizer{.rate = 1};
  Precision precision = plain(Precision::mixed());
  tour.line("a gradient of 1e-8 moves a weight, without a loss scale, by", 0,
            -tour.trained(precision, optimizer, 1e-8F, 1, 1)[0]);
  precision.loss_scale = LossScale::fixed(32768);
  tour.line("a gradient of 1e-8 moves a weight, with one of 32768, by", 9.9972e-9F,
            -tour.trained(precision, optimizer, 1e-8F, 1, 1)[0]);
}

int run(const std::string& selector) {
  const Device device = Device::open(selector);
  Tour tour(device);
  absorption(tour);
  small_steps(tour);
  long_sums(tour);
  single_numbers(tour);
  small_gradients(tour);
  if (tour.differences() > 0) {
    fmt::print("{} lines differ on {}\n", tour.differences(), device.info().name);
    return 1;
  }
  fmt::print("all as expected on {}\n", device.info().name);
  return samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows what half precision does to numbers, computed on the device.");
  std::string device;
  app.add_option("--device", device, "Index or part of the name of the device; bin/devices lists them");
  return samples::run_program(app, argc, argv, [&] { return run(device); });
}
