#pragma once

#include <halfstep/tensor.h>

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/operator.h"
#include "plan/lowering.h"

namespace halfstep::ops {

/// A number in a formula: arithmetic on it adds steps to an expression. Besides the operators, each primitive of
/// plan/primitives.def is a function on numbers.
class Number {
 public:
  Number(plan::Expression& expression, plan::Register at) : expression_(&expression), at_(at) {}

  plan::Register at() const { return at_; }

  friend Number operator+(Number a, Number b) { return a.step(plan::Op::add, b); }
  friend Number operator-(Number a, Number b) { return a.step(plan::Op::sub, b); }
  friend Number operator*(Number a, Number b) { return a.step(plan::Op::mul, b); }
  friend Number operator/(Number a, Number b) { return a.step(plan::Op::div, b); }
  friend Number operator*(Number a, float c) { return a.step(plan::Op::scale, a, c); }
  friend Number operator+(Number a, float c) { return a.step(plan::Op::offset, a, c); }
  friend Number operator-(float c, Number a) { return a * -1.0F + c; }

  /// The result of one step on this number, b and a constant.
  Number step(plan::Op op, Number b, float constant = 0) const {
    return {*expression_, expression_->add({op, at_, b.at_, constant})};
  }

 private:
  plan::Expression* expression_;
  plan::Register at_;
};

// A function of each primitive's name, with the arguments that its line in the table lists.
#define HALFSTEP_FUNCTION_a(name)     \
  inline Number name(Number a) {      \
    return a.step(plan::Op::name, a); \
  }
#define HALFSTEP_FUNCTION_ab(name)         \
  inline Number name(Number a, Number b) { \
    return a.step(plan::Op::name, b);      \
  }
#define HALFSTEP_FUNCTION_ac(name)        \
  inline Number name(Number a, float c) { \
    return a.step(plan::Op::name, a, c);  \
  }
#define HALFSTEP_FUNCTION_abc(name)                 \
  inline Number name(Number a, Number b, float c) { \
    return a.step(plan::Op::name, b, c);            \
  }
#define PRIMITIVE(number, name, arguments, result) HALFSTEP_FUNCTION_##arguments(name)
#include "plan/primitives.def"
#undef PRIMITIVE
#undef HALFSTEP_FUNCTION_a
#undef HALFSTEP_FUNCTION_ab
#undef HALFSTEP_FUNCTION_ac
#undef HALFSTEP_FUNCTION_abc

/// The formula of an elementwise operator, from its inputs to its output.
using Formula = std::function<Number(std::span<const Number>)>;

/// Appends the dispatch that computes `formula` of `inputs`, which broadcast to the shape of `result`. Each may have
/// any floating type.
void lower_elementwise(plan::Lowering& out, std::span<const plan::TensorId> inputs, plan::TensorId result,
                       const Formula& formula);

/// y = f(a, b, ...), elementwise, with NumPy broadcasting.
class Elementwise : public graph::Operator {
 public:
  /// `attributes` are the constants of the formula that are given with the operator.
  Elementwise(std::string name, Formula formula, graph::Attributes attributes = {})
      : name_(std::move(name)), formula_(std::move(formula)), attributes_(std::move(attributes)) {}

  std::string name() const override { return name_; }
  graph::Attributes attributes() const override { return attributes_; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void lower(plan::Lowering& out) const override;

 protected:
  const Formula& formula() const { return formula_; }

 private:
  std::string name_;
  Formula formula_;
  graph::Attributes attributes_;
};

}  // namespace halfstep::ops
