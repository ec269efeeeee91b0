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

/// A number in a formula: arithmetic on it adds steps to an expression.
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

  friend Number relu(Number a) { return a.step(plan::Op::relu, a); }
  friend Number sigmoid(Number a) { return a.step(plan::Op::sigmoid, a); }
  friend Number tanh(Number a) { return a.step(plan::Op::tanh, a); }
  /// min(a, c).
  friend Number at_most(Number a, float c) { return a.step(plan::Op::at_most, a, c); }
  /// a if b is above 0, else 0.
  friend Number where_positive(Number a, Number b) { return a.step(plan::Op::where_positive, b); }
  /// a if b is above 0, else a c.
  friend Number where_positive_or_scaled(Number a, Number b, float c) {
    return a.step(plan::Op::where_positive_or_scaled, b, c);
  }
  /// The derivative of hardswish at a.
  friend Number hardswish_slope(Number a) { return a.step(plan::Op::hardswish_slope, a); }

 private:
  Number step(plan::Op op, Number b, float constant = 0) const {
    return {*expression_, expression_->add({op, at_, b.at_, constant})};
  }

  plan::Expression* expression_;
  plan::Register at_;
};

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

 private:
  std::string name_;
  Formula formula_;
  graph::Attributes attributes_;
};

}  // namespace halfstep::ops
