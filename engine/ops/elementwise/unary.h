#pragma once

#include <optional>
#include <string>

#include "ops/elementwise/elementwise.h"

namespace halfstep::ops {

using Numbers = std::span<const Number>;

/// The tensor that the gradient of a function of one tensor needs besides dy.
enum class GradientOf : std::uint8_t {
  result,  ///< which the next operator keeps anyway
  input,   ///< if one result has two possible inputs
};

/// y = f(x) of every element: `result` is y of x, and `gradient` dx of dy and y or x. `attributes` are the constants of
/// both.
Tensor unary(std::string name, Tensor x, Formula result, Formula gradient, GradientOf from = GradientOf::result,
             graph::Attributes attributes = {});

/// What an operator that unary() made computes.
struct UnaryFormulas {
  Formula result;
  Formula gradient;
  GradientOf from = GradientOf::result;
};
/// Empty for any other operator.
std::optional<UnaryFormulas> unary_formulas(const graph::Operator& op);

}  // namespace halfstep::ops
