// How an application's own kernels store 16-bit results.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <reversed_quads.spirv.h>
#include <scaled_square.spirv.h>

#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/errors.h"

using namespace halfstep;

namespace {

constexpr std::int64_t width = 8;
constexpr std::uint32_t quads = 2;

/// Its quads in reverse order, by a kernel that only moves them.
class ReversedQuads final : public CustomOperator {
 public:
  explicit ReversedQuads(bool stores_by_itself) : stores_by_itself_(stores_by_itself) {}

  std::string name() const override { return "reversed_quads"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  CustomKernels kernels(const CustomTypes& /*types*/) const override {
    std::vector<std::uint32_t> constants(99);  // 1 to 99
    constants[30] = quads - 1;
    constants[98] = 1;
    return {.dispatches = {{.shader = "reversed_quads",
                            .spirv = halfstep_kernels::reversed_quads(),
                            .operands = {reads_input(0), writes_output(0)},
                            .constants = std::move(constants),
                            .invocations = quads,
                            .stores_by_itself = stores_by_itself_}}};
  }

 private:
  bool stores_by_itself_;
};

/// What the predictor of x in reverse order gives.
std::vector<float> reversed(const Precision& precision, bool stores_by_itself) {
  Graph graph;
  const Tensor inputs[] = {graph.input("x", {width})};
  const Tensor y = apply_operator(std::make_shared<ReversedQuads>(stores_by_itself), inputs)[0];
  Predictor predictor = Predictor::compile(testing::device(), graph, y, precision);
  std::vector<float> x(width);
  std::iota(x.begin(), x.end(), 1.0F);
  return predictor.run({{"x", std::span<const float>(x)}});
}

/// From x and a state: the next value of that and y, both powers of x in x's type, rounded four times on the way.
class PowersAndState final : public CustomOperator {
 public:
  std::string name() const override { return "powers_and_state"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[1], inputs[0]}; }
  bool keeps_types() const override { return true; }
  CustomKernels kernels(const CustomTypes& types) const override {
    const CustomOperand made{CustomOperand::Kind::workspace, 0, CustomOperand::Use::write};
    const CustomOperand read{CustomOperand::Kind::workspace, 0, CustomOperand::Use::read};
    return {
        .dispatches = {square({reads_input(0), reads_input(0), made}), square({read, reads_input(0), writes_output(1)}),
                       square({reads_input(1), reads_input(1), writes_output(0)})},
        .workspaces = {types.inputs[0]}};
  }
  std::vector<std::optional<Tensor>> gradients(const CustomGradientCall& call) const override {
    return {call.gradients[1], std::nullopt};
  }

 private:
  /// y = s x^2 of {x, s, y}.
  static CustomDispatch square(std::vector<CustomOperand> operands) {
    return {.shader = "scaled_square",
            .spirv = halfstep_kernels::scaled_square(),
            .operands = std::move(operands),
            .constants = {quads},
            .push = push_constants(quads),
            .invocations = quads};
  }
};

/// The weights after two steps, at a rate at which the last bit of a gradient shows.
std::vector<float> trained(const std::string& recompute) {
  Graph graph;
  const Scope block = graph.root() / "block";
  const Tensor state = block.state("average", {width}, constant(1));
  const Tensor x = mul(graph.input("x", {width}), block.parameter("w", {width}, constant(1.1F)));
  const Tensor inputs[] = {x, state};
  const std::vector<Tensor> outputs = apply_operator(std::make_shared<PowersAndState>(), inputs);
  update(state, outputs[0]);
  const Tensor y = mul(outputs[1], block.parameter("v", {width}, constant(0.7F)));
  const Tensor loss = sum(mul(y, (graph.root() / "head").parameter("u", {width}, constant(0.3F))));
  Precision precision = Precision::float16(1);
  precision.rounding.activations = Rounding::stochastic;
  Trainer trainer =
      Trainer::compile(testing::device(), graph,
                       {.loss = loss, .optimizer = Sgd{.rate = 4}, .recompute = recompute, .precision = precision});
  const std::vector<float> values{0.91F, 1.03F, 0.87F, 1.01F, 0.93F, 1.07F, 0.83F, 0.97F};
  for (int i = 0; i < 2; ++i) trainer.step({{"x", std::span(values)}});
  trainer.finish();
  CHECK(trainer.report().applied == 2);
  std::vector<float> weights;
  for (const char* name : {"block/w", "block/v", "head/u"}) {
    for (const float w : trainer.parameter(name)) weights.push_back(w);
  }
  return weights;
}

}  // namespace

TEST_CASE("a kernel that does not store as the precision says is refused unless it says so") {
  Precision random = Precision::float16();
  random.rounding.activations = Rounding::stochastic;
  Precision saturating = Precision::float16();
  saturating.overflow = Overflow::saturate;
  const std::vector<float> wanted{5, 6, 7, 8, 1, 2, 3, 4};
  for (const Precision& precision : {Precision::float32(), Precision::bfloat16(), Precision::float16()})
    CHECK(reversed(precision, false) == wanted);
  const std::array refused{std::pair(random, "rounded at random"), std::pair(saturating, "saturating")};
  for (const auto& [precision, what] : refused) {
    CAPTURE(what);
    const std::string error = testing::error_of([&, &of = precision] { reversed(of, false); });
    CHECK(error.starts_with("[reversed_quads] expected reversed_quads."));
    CHECK(error.find(std::string(" to store 16-bit results as the precision says (") + what +
                     "), got a kernel that does not. Hint: write them by to_quad()") != std::string::npos);
    CHECK(reversed(precision, true) == wanted);
  }
}

TEST_CASE("what an operator whose first result is a state's next value computes again has the same noise") {
  const std::vector<float> kept = trained("");
  CHECK(trained("block") == kept);
}
