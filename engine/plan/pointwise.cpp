#include "plan/pointwise.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace halfstep::plan {
namespace {

/// As in pointwise.comp.
struct Push {
  std::uint32_t quads;
  std::array<std::uint32_t, max_terms> divisors;
  std::array<std::uint32_t, max_terms> extents;
  std::array<std::uint32_t, max_terms> strides;
};

Push push_constants(const Expression& expression) {
  Push push{};
  push.quads = static_cast<std::uint32_t>(expression.layout.quads());
  std::size_t next = 0;
  for (const Reading& one : expression.reads) {
    for (const Term& term : one.terms) {
      push.divisors[next] = term.divisor;
      push.extents[next] = term.extent;
      push.strides[next] = term.stride;
      ++next;
    }
  }
  return push;
}

}  // namespace

Dispatch pointwise(Expression expression, std::vector<Operand> operands) {
  Dispatch dispatch;
  dispatch.expression = std::move(expression);
  dispatch.operands = std::move(operands);
  return dispatch;
}

void specialize(const Program& program, const Target& target, Dispatch& dispatch) {
  const Expression& expression = *dispatch.expression;
  std::vector<bool> wide;
  DType variant = expression.rounds() ? expression.storage : DType::f32;
  for (const Operand& operand : dispatch.operands) {
    const DType dtype = program.tensors[operand.tensor].type.dtype;
    wide.push_back(dtype == DType::f32);
    if (is_narrow(dtype)) variant = dtype;
  }
  if (expression.kernel == Expression::Kernel::none) {
    dispatch.shader = fmt::format("pointwise.{}", storage(target, variant));
    dispatch.constants = {flat_local_size(target)};
    dispatch.push = push_bytes(push_constants(expression));
    dispatch.groups = groups_for(target, expression.layout.quads(), flat_local_size(target));
  }
  const std::vector<std::uint32_t> constants = expression_constants(expression, wide);
  dispatch.constants.resize(first_expression_constant);
  dispatch.constants.insert(dispatch.constants.end(), constants.begin(), constants.end());
}

}  // namespace halfstep::plan
