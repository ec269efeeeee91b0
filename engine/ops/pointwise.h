#pragma once

#include <halfstep/tensor.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/operator.h"

namespace halfstep::ops {

/// What an elementwise function of one tensor does with zero.
enum class AtZero : std::uint8_t { zero, other };

/// y = f(x), where f is the shader of the operator's name.
class Pointwise : public graph::Operator {
 public:
  explicit Pointwise(std::string name, AtZero at_zero = AtZero::zero, float parameter = 0)
      : name_(std::move(name)), at_zero_(at_zero), parameter_(parameter) {}

  std::string name() const override { return name_; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void lower(plan::Lowering& out) const override;

 protected:
  float parameter() const { return parameter_; }

 private:
  std::string name_;
  AtZero at_zero_;
  float parameter_;
};

/// y = f(a, b) with the shapes broadcast, where f is the shader of the operator's name or the one given, with a factor
/// where it has one.
class PointwisePair : public graph::Operator {
 public:
  explicit PointwisePair(const std::string& name) : PointwisePair(name, name) {}
  PointwisePair(std::string name, std::string shader, float factor = 1)
      : name_(std::move(name)), shader_(std::move(shader)), factor_(factor) {}

  std::string name() const override { return name_; }
  graph::Numerics numerics() const override { return graph::Numerics::pair; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void lower(plan::Lowering& out) const override;

 private:
  std::string name_;
  std::string shader_;
  float factor_;
};

}  // namespace halfstep::ops
