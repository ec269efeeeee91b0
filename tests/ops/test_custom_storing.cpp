// How an application's own kernels store 16-bit results.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <scaled_square.spirv.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/device.h"

using namespace halfstep;

namespace {

constexpr std::int64_t width = 8;
constexpr std::uint32_t quads = 2;

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

TEST_CASE("what an operator whose first result is a state's next value computes again has the same noise") {
  const std::vector<float> kept = trained("");
  CHECK(trained("block") == kept);
}
