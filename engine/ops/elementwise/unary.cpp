#include "ops/elementwise/unary.h"

#include <utility>

#include "ops/apply.h"
#include "ops/expect.h"

namespace halfstep::ops {
namespace {

/// dx, from dy and the result y or the input x.
class UnaryGradient final : public Elementwise {
 public:
  using Elementwise::Elementwise;

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_count(name(), inputs, 2);
    expect_same_shape(name(), inputs[0], inputs[1]);
    return Elementwise::infer(inputs);
  }
};

class Unary final : public Elementwise {
 public:
  Unary(std::string name, Formula result, Formula gradient, GradientOf from, graph::Attributes attributes)
      : Elementwise(std::move(name), std::move(result), std::move(attributes)),
        gradient_(std::move(gradient)),
        from_(from) {}

  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor from = from_ == GradientOf::result ? call.outputs[0] : call.inputs[0];
    return {apply<UnaryGradient>({*call.cotangents[0], from}, name() + "_gradient", gradient_, attributes())};
  }

  UnaryFormulas formulas() const { return {formula(), gradient_, from_}; }

 private:
  Formula gradient_;
  GradientOf from_;
};

}  // namespace

Tensor unary(std::string name, Tensor x, Formula result, Formula gradient, GradientOf from,
             graph::Attributes attributes) {
  return apply<Unary>({x}, std::move(name), std::move(result), std::move(gradient), from, std::move(attributes));
}

std::optional<UnaryFormulas> unary_formulas(const graph::Operator& op) {
  const auto* found = dynamic_cast<const Unary*>(&op);
  if (found == nullptr) return {};
  return found->formulas();
}

}  // namespace halfstep::ops
