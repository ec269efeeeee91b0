#include "ops/elementwise/elementwise.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <limits>

#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/shape/broadcast.h"
#include "plan/pointwise.h"

namespace halfstep::ops {
namespace {

void expect_room(const plan::Lowering& out, const plan::Expression& expression) {
  if (expression.terms() > plan::max_terms) {
    fail(out.label(), fmt::format("expected shapes that broadcast along at most {} groups of axes, got {}",
                                  plan::max_terms, expression.terms()));
  }
}

}  // namespace

void lower_elementwise(plan::Lowering& out, std::span<const plan::TensorId> inputs, plan::TensorId result,
                       const Formula& formula) {
  const Shape shape = out.type(result).shape;
  plan::Expression expression;
  expression.layout = plan::layout(shape);
  index32(out, expression.layout.padded_elements());
  std::vector<plan::Operand> operands{{result, plan::Access::write}};
  std::vector<Number> numbers;
  for (const plan::TensorId input : inputs) {
    numbers.emplace_back(expression, static_cast<plan::Register>(expression.reads.size()));
    expression.reads.push_back(plan::reading(shape, out.type(input).shape));
    operands.push_back({input, plan::Access::read});
  }
  expression.value = formula(numbers).at();
  expect_room(out, expression);
  out.dispatch(plan::pointwise(std::move(expression), std::move(operands)));
}

std::vector<TensorType> Elementwise::infer(std::span<const TensorType> inputs) const {
  TensorType result = inputs.front();
  expect_float(name_, "a tensor", result);
  for (const TensorType& input : inputs.subspan(1)) {
    expect_same_float(name_, result, input);
    result.shape = broadcast_shape(name_, result.shape, input.shape);
  }
  return {result};
}

void Elementwise::lower(plan::Lowering& out) const {
  std::vector<plan::TensorId> inputs;
  for (std::size_t i = 0; i < out.input_count(); ++i) inputs.push_back(out.input(i));
  lower_elementwise(out, inputs, out.output(0), formula_);
}

}  // namespace halfstep::ops
