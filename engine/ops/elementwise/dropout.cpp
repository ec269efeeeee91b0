#include "ops/elementwise/dropout.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

/// The dropped elements depend on the step and the name of the noise; the gradient draws the same ones.
class Dropout final : public graph::Operator {
 public:
  Dropout(float probability, std::string noise) : probability_(probability), noise_(std::move(noise)) {}

  std::string name() const override { return "dropout"; }
  graph::Attributes attributes() const override { return {{"probability", probability_}, {"noise", noise_}}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    ops::expect_float(name(), "a tensor", inputs[0]);
    return {inputs[0]};
  }

  // dx = dy with the same elements dropped, and the others scaled in the same way
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {ops::apply<Dropout>({*call.cotangents[0]}, probability_, noise_)};
  }

  std::optional<Tensor> inference(std::span<const Tensor> inputs) const override { return inputs[0]; }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t quads;
      std::uint32_t stream;
      std::uint32_t dropped;  ///< random words below this drop their element
      float factor;
    };
    const TensorType& type = out.type(out.output(0));
    const std::int64_t quads = plan::layout(type.shape).quads();
    const plan::Noise noise = out.noise(noise_);
    const Push push{ops::index32(out, quads), noise.stream, ops::dropped_below(probability_), 1 / (1 - probability_)};
    ops::dispatch_flat(
        out, ops::variant(out, "dropout", type.dtype), quads, push,
        {{out.input(0), plan::Access::read}, {noise.key, plan::Access::read}, {out.output(0), plan::Access::write}});
  }

 private:
  float probability_;
  std::string noise_;
};

}  // namespace

std::string ops::fresh_noise(const graph::Ir& ir) {
  const auto draws = [](const graph::Node& node) {
    return std::ranges::any_of(node.op->attributes(), [](const graph::Attribute& a) { return a.name == "noise"; });
  };
  return fmt::format("dropout {}", std::ranges::count_if(ir.nodes, draws));
}

float ops::checked_probability(std::string_view op, float probability) {
  if (!(probability >= 0 && probability < 1)) {
    fail(std::string(op), fmt::format("expected a probability from 0 to below 1, got {}", probability));
  }
  return probability;
}

Tensor ops::dropout(Tensor x, float probability, const std::string& noise) {
  return ops::apply<Dropout>({x}, probability, noise);
}

std::uint32_t ops::dropped_below(float probability) {
  return static_cast<std::uint32_t>(static_cast<double>(probability) * 0x1p32);
}

Tensor dropout(Tensor x, float probability) {
  if (ops::checked_probability("dropout", probability) == 0) return x;
  return ops::dropout(x, probability, ops::fresh_noise(graph::ir_of(x)));
}

}  // namespace halfstep
