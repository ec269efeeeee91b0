#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "plan/program.h"
#include "reference/array.h"
#include "reference/mlp.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::on_swiftshader;
using testing::uniform;

namespace {

struct Activation {
  std::function<Tensor(Tensor)> apply;
  std::function<double(double)> formula;
  std::function<double(double)> slope;
};

constexpr double pi = 3.14159265358979323846;

double logistic(double v) {
  return 1 / (1 + std::exp(-v));
}
double cdf(double v) {
  return 0.5 * std::erfc(-v / std::sqrt(2.0));
}
double step(double v) {
  return v > 0 ? 1 : 0;
}

/// gelu by tanh: v times a logistic function of this.
double cubic(double v) {
  return std::sqrt(8 / pi) * (v + 0.044715 * v * v * v);
}
double cubic_gelu_slope(double v) {
  const double s = logistic(cubic(v));
  return s + v * s * (1 - s) * std::sqrt(8 / pi) * (1 + 3 * 0.044715 * v * v);
}

const Activation tanh_activation{[](Tensor x) { return halfstep::tanh(x); }, [](double v) { return std::tanh(v); },
                                 [](double v) { return 1 - std::tanh(v) * std::tanh(v); }};
const Activation silu_activation{silu, [](double v) { return v * logistic(v); },
                                 [](double v) { return logistic(v) * (1 + v * (1 - logistic(v))); }};

std::vector<Activation> activations() {
  return {
      {relu, [](double v) { return std::max(v, 0.0); }, step},
      {nullptr, [](double v) { return v; }, [](double) { return 1.0; }},
      {relu6, [](double v) { return std::min(std::max(v, 0.0), 6.0); }, [](double v) { return step(v) * step(6 - v); }},
      {[](Tensor x) { return leaky_relu(x, 0.25F); }, [](double v) { return v > 0 ? v : 0.25 * v; },
       [](double v) { return v > 0 ? 1 : 0.25; }},
      {sigmoid, logistic, [](double v) { return logistic(v) * (1 - logistic(v)); }},
      tanh_activation,
      silu_activation,
      {hardswish, [](double v) { return v * std::min(std::max(v / 6 + 0.5, 0.0), 1.0); },
       [](double v) { return v < -3  ? 0
                             : v > 3 ? 1
                                     : v / 3 + 0.5; }},
      {[](Tensor x) { return gelu(x); }, [](double v) { return v * cdf(v); },
       [](double v) { return cdf(v) + v * std::exp(-v * v / 2) / std::sqrt(2 * pi); }},
      {[](Tensor x) { return gelu(x, Gelu::tanh); }, [](double v) { return v * logistic(cubic(v)); }, cubic_gelu_slope},
      {[](Tensor x) { return halfstep::exp(x); }, [](double v) { return std::exp(v); },
       [](double v) { return std::exp(v); }},
      {[](Tensor x) { return halfstep::sin(x); }, [](double v) { return std::sin(v); },
       [](double v) { return std::cos(v); }}};
}

struct Sizes {
  std::int64_t rows = 1, in = 1, width = 1, hidden = 1, out = 1;
  bool biases = true;
};

/// Of the operator as it is trained, or as it predicts.
Check check_of(const Sizes& size, const Activation& activation, bool predicts) {
  const std::size_t step = size.biases ? 2 : 1;
  Check check;
  check.name = predicts ? "fused_mlp_inference" : "fused_mlp";
  check.inputs.push_back({uniform({size.rows, size.in}, 1)});
  for (std::int64_t layer = 0; layer <= size.hidden; ++layer) {
    const std::int64_t k = layer == 0 ? size.in : size.width;
    const std::int64_t n = layer == size.hidden ? size.out : size.width;
    const double bound = 1.7 / std::sqrt(static_cast<double>(k));
    check.inputs.push_back({uniform({k, n}, static_cast<std::uint32_t>(10 + layer), -bound, bound)});
    if (size.biases) check.inputs.push_back({uniform({n}, static_cast<std::uint32_t>(30 + layer), -0.5, 0.5)});
  }
  check.build = [=](std::span<const Tensor> x) {
    std::vector<DenseLayer> layers;
    for (std::size_t i = 1; i < x.size(); i += step) {
      layers.push_back({x[i], {}});
      if (step == 2) layers.back().bias = x[i + 1];
    }
    const Tensor y = fused_mlp(x[0], layers, {.activation = activation.apply});
    if (!predicts) return y;
    const std::shared_ptr<const graph::Operator> op = graph::ir_of(y).nodes.back().op;
    return op->inference(x).value();
  };
  const reference::Mlp network{activation.formula, activation.slope, size.biases};
  check.reference = [=](std::span<const Array> x) { return reference::mlp(x, network); };
  check.gradients = [=](std::span<const Array> x, const Array& dy) { return reference::mlp_gradients(x, dy, network); };
  check.arithmetic = 4e-6;
  check.magnitude = 1;
  check.roundings = static_cast<int>(3 * size.hidden + 3);
  // Drivers that do not load uniforms well take minutes to compile the unrolled layers of a wide network.
  if (size.width <= 16) check.targets = testing::product_targets();
  return check;
}

/// The kernels for GPUs, by which a software driver computes nothing of itself.
std::vector<std::string> gpu_kernels() {
  std::vector<std::string> names{"tile"};
  for (const plan::MatrixShape& shape : testing::context().target().matrix_shapes) {
    if (!shape.float16_sums && shape.type == plan::MatrixType::float16)
      names.push_back(fmt::format("units{}x{}x{}", shape.rows, shape.columns, shape.k));
  }
  return names;
}

/// For gradients, whose terms are not larger than the largest of them.
Check of_gradients(Check check) {
  check.magnitude = 0;
  return check;
}

/// By one kernel.
Check check_of(const Sizes& size, const Activation& activation, bool predicts, const std::string& kernel) {
  Check check = check_of(size, activation, predicts);
  check.targets = {testing::context().target()};
  check.targets.front().mlp_kernel = kernel;
  if (kernel != "tile") check.dtypes = {DType::f16};
  return check;
}

/// The kernels that it is lowered to.
std::set<std::string> kernels_of(const Check& check, const plan::Target& target, DType dtype) {
  Graph graph = testing::settled_graph();
  std::vector<Tensor> inputs;
  for (const testing::Operand& operand : check.inputs) {
    inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), operand.values.shape, dtype));
  }
  const Tensor y = check.build(inputs);
  plan::ProgramBuilder builder(target);
  for (const Tensor& input : inputs) builder.values().bind(input.id(), builder.tensor("x", input.type()));
  for (const graph::Node& node : graph::ir_of(y).nodes) builder.lower(graph::ir_of(y), node);
  std::set<std::string> kernels;
  for (const plan::Dispatch& dispatch : builder.finish().dispatches) kernels.insert(dispatch.shader);
  return kernels;
}

}  // namespace

TEST_CASE("a fused network by kernels for GPUs, of every width and depth and with every activation") {
  const std::vector<Activation> all = activations();
  // A size for each activation: the one whose gradient is of its result, then of its argument, first. Software drivers
  // take long to compile these kernels: the last ones are checked where every variant is asked for, and by SwiftShader
  // and in 16-bit storage only the first.
  const std::vector<std::pair<Sizes, std::size_t>> checks{{{257, 37, 17, 3, 19, false}, 5},
                                                          {{131, 2, 16, 1, 1}, 6},
                                                          {{9, 70, 48, 2, 50}, 4},
                                                          {{9, 17, 100, 7, 3}, 9},
                                                          {{9, 33, 32, 4, 3}, 7},
                                                          {{7, 6, 64, 5, 70}, 8},
                                                          {{5, 128, 128, 8, 5}, 11},
                                                          {{9, 3, 16, 2, 6}, 0},
                                                          {{9, 3, 8, 2, 6}, 1},
                                                          {{9, 3, 16, 2, 6}, 2},
                                                          {{9, 3, 16, 2, 6}, 3},
                                                          {{1, 1, 1, 1, 1}, 10}};
  const bool few = on_swiftshader() || testing::context().settings().tier == "native";
  const std::size_t count = testing::every_variant() ? checks.size() : few ? 1 : 8;
  for (const std::string& kernel : gpu_kernels()) {
    for (const auto& [size, which] : std::span(checks).first(count)) {
      CAPTURE(kernel);
      CAPTURE(size.width);
      Check trained = check_of(size, all[which], false, kernel);
      trained.arithmetic = 2e-5;
      trained.roundings += 4;
      if (few && !testing::every_variant()) trained.dtypes = {on_swiftshader() ? DType::f32 : DType::f16};
      testing::check_gradient(of_gradients(trained));
      if (size.rows < 100 && !testing::every_variant()) continue;
      testing::check_operator(trained);
      Check predicted = check_of(size, all[which], true, kernel);
      predicted.dtypes = trained.dtypes;
      testing::check_operator(predicted);
    }
  }
}

TEST_CASE("kernels for GPUs compute networks of every width, and on a GPU all of them") {
  plan::Target target = testing::context().target();
  target.cpu = false;
  target.max_rounds = plan::Target{}.max_rounds;
  target.max_invocations = 128;
  target.shared_memory_bytes = 32768;
  target.max_storage_buffers = 19;
  target.max_storage_range = std::uint64_t{1} << 27;
  target.subgroups.size = 32;
  target.matrix_shapes = {{16, 16, 16, true}, {16, 16, 16, false}};
  for (const std::int64_t width : {1, 16, 17, 32, 48, 64, 100, 128}) {
    CAPTURE(width);
    const Check check = check_of({9, 300, width, 8, 200}, silu_activation, false);
    CHECK(kernels_of(check, target, DType::f32) == std::set<std::string>{"mlp_pack.f32", "mlp_forward.f32.layers"});
    CHECK(kernels_of(check, target, DType::bf16) == std::set<std::string>{"mlp_pack.bf16", "mlp_forward.bf16.layers"});
    CHECK(kernels_of(check, target, DType::f16) ==
          std::set<std::string>{"mlp_pack.packed", "mlp_forward_cooperative.layers"});
  }
  const Check check = check_of({9, 3, 64, 2, 2}, silu_activation, false);
  const auto is_fused = [&](const plan::Target& limited) {
    return kernels_of(check, limited, DType::f32).contains("mlp_forward.f32.layers");
  };
  CHECK(is_fused(target));
  plan::Target limited = target;
  limited.shared_memory_bytes = 16384;
  CHECK(!is_fused(limited));
  limited = target;
  limited.max_storage_buffers = 18;
  CHECK(!is_fused(limited));
  limited = target;
  limited.max_rounds = 230;
  CHECK(!is_fused(limited));
  limited = target;
  limited.mlp_kernel = "layers";
  CHECK(!is_fused(limited));
}

TEST_CASE("a fused network layer by layer and by rows, with every activation") {
  bool first = true;
  for (const Activation& activation : activations()) {
    Check predicted = check_of({37, 3, 5, 2, 6}, activation, true);
    if (!first) predicted.dtypes = {DType::f32};
    testing::check_operator(predicted);
    first = false;
  }
  // What trains layer by layer is composed of operators that have tests of their own, in every type.
  for (const Activation& activation : {tanh_activation, silu_activation}) {
    Check check = of_gradients(check_of({3, 3, 4, 2, 2}, activation, false));
    check.dtypes = {DType::f32};
    check.targets.resize(1);
    testing::check_gradient(check);
  }
}

TEST_CASE("a fused network layer by layer and by rows, of every width and depth") {
  for (const Sizes& size : {Sizes{131, 2, 16, 1, 1}, Sizes{67, 32, 32, 4, 3, false}, Sizes{7, 128, 33, 8, 5},
                            Sizes{65, 6, 64, 2, 70}, Sizes{9, 17, 128, 1, 3}, Sizes{1, 1, 1, 1, 1}}) {
    CAPTURE(size.width);
    CAPTURE(size.hidden);
    Check check = check_of(size, tanh_activation, true);
    check.arithmetic = 2e-5;
    testing::check_operator(check);
  }
  Check check = check_of({3, 5, 16, 8, 1, false}, tanh_activation, false);
  testing::check_operator(check);
  check.dtypes = {DType::f32, DType::f16};
  check.targets.resize(1);
  testing::check_gradient(of_gradients(check));
}

TEST_CASE("a fused network whose activation is infinite at 0, where a row has columns that are not there") {
  const Activation inverse{[](Tensor x) { return pow(x, -1.0F); }, [](double v) { return 1 / v; },
                           [](double v) { return -1 / (v * v); }};
  for (const std::int64_t width : {5, 7, 30}) {
    Check check = check_of({9, 3, width, 2, 6}, inverse, true);
    for (testing::Operand& operand : check.inputs) {
      for (double& value : operand.values.values) value = 0.5 + std::abs(value);
    }
    check.dtypes = {DType::f32};
    testing::check_operator(check);
  }
}

TEST_CASE("a network that is no operator of its own is computed layer by layer") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 3});
  const DenseLayer first{graph.input("first", {3, 8})};
  const DenseLayer second{graph.input("second", {8, 4})};
  const DenseLayer third{graph.input("third", {4, 2})};
  const auto last_name = [](Tensor y) { return graph::ir_of(y).nodes.back().op->name(); };
  CHECK(last_name(fused_mlp(x, {first, second})) == "fused_mlp");
  CHECK(last_name(fused_mlp(x, {first, second}, {.output_activation = sigmoid})) == "sigmoid");
  CHECK(last_name(fused_mlp(x, {first})) == "linear");
  CHECK(last_name(fused_mlp(x, {first, second, third})) == "linear");
  CHECK(last_name(fused_mlp(x, {first, second}, {.activation = [](Tensor v) { return mul(v, v); }})) == "linear");
  const Tensor slope = graph.input("slope", {8});
  CHECK(last_name(fused_mlp(x, {first, second}, {.activation = [&](Tensor v) { return mul(v, slope); }})) == "linear");
  CHECK(last_name(fused_mlp(x, {first, second}, {.activation = [](Tensor v) {
                              const std::vector<Tensor> halves = split(v, {4, 4}, -1);
                              return concat({relu(halves[0]), tanh(halves[1])}, -1);
                            }})) == "linear");
  CHECK_THROWS_WITH_AS(fused_mlp(x, {}), "[fused_mlp] expected one layer or more, got none", Error);
  CHECK_THROWS_WITH_AS(fused_mlp(x, {second}), "[fused_mlp] expected weight 0 {3, out}, got f32 {8, 4}", Error);
  CHECK_THROWS_WITH_AS(fused_mlp(x, {{first.weight, x}}), "[fused_mlp] expected bias 0 {8}, got f32 {2, 3}", Error);
}
