#include "ops/elementwise/cast.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <array>
#include <optional>

#include "graph/ir.h"
#include "ops/apply.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

/// The same values in another floating type.
class Cast final : public graph::Operator {
 public:
  explicit Cast(DType dtype) : dtype_(dtype) {}

  std::string name() const override { return "cast"; }
  graph::Attributes attributes() const override { return {{"dtype", dtype_}}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }
  bool moves_bits(std::span<const TensorType> inputs) const override { return inputs[0].dtype == dtype_; }

  bool keeps_values(std::span<const TensorType> inputs) const override {
    return dtype_ == DType::f32 || inputs[0].dtype == dtype_;
  }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    ops::expect_float(name(), "a tensor", inputs[0]);
    ops::expect_float(name(), "a result", {dtype_, inputs[0].shape});
    return {{dtype_, inputs[0].shape}};
  }

  // dx = dy in x's type
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor dy = *call.cotangents[0];
    return {dy.dtype() == call.inputs[0].dtype() ? dy : cast(dy, call.inputs[0].dtype())};
  }

  // Applies to the operator before the cast.
  std::optional<Tensor> with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset) const override {
    graph::Ir& ir = graph::ir_of(inputs[0]);
    const graph::Value& value = ir.values[inputs[0].id()];
    if (value.origin != graph::Origin::node) return {};
    const graph::Node producer = ir.nodes[value.producer];  // a copy: this appends nodes
    std::vector<Tensor> operands;
    for (const graph::ValueId input : producer.inputs) operands.push_back(ir.tensor(input));
    const auto folded = producer.op->with_affine(operands, factor, offset);
    if (!folded) return {};
    return cast(*folded, dtype_);
  }

  void lower(plan::Lowering& out) const override {
    if (out.input_type(0).dtype == dtype_) return out.alias(0, 0);
    // A kernel knows one narrow type.
    const bool through_f32 = is_narrow(out.input_type(0).dtype) && is_narrow(dtype_);
    ops::lower_cast(out, through_f32 ? ops::in_f32(out, out.input(0)) : out.input(0), out.output(0));
    const std::optional<plan::ChannelMoments> moments = out.moments_of(out.input(0));
    if (moments && dtype_ == DType::f32) out.provide_moments(out.output(0), *moments);
  }

 private:
  DType dtype_;
};

}  // namespace

// A cast to the tensor's own type is kept: the precision policy may still give the tensor another type.
Tensor cast(Tensor x, DType dtype) {
  return ops::apply<Cast>({x}, dtype);
}

Tensor ops::before_cast(Tensor x) {
  graph::Ir& ir = graph::ir_of(x);
  const graph::Value& value = ir.values[x.id()];
  if (value.origin != graph::Origin::node) return x;
  const graph::Node& producer = ir.nodes[value.producer];
  if (dynamic_cast<const Cast*>(producer.op.get()) == nullptr) return x;
  const Tensor wide = ir.tensor(producer.inputs[0]);
  return wide.dtype() == DType::f32 ? wide : x;
}

Tensor ops::in_type(Tensor x, DType dtype) {
  return x.dtype() == dtype ? x : cast(x, dtype);
}

void ops::lower_cast(plan::Lowering& out, plan::TensorId from, plan::TensorId to) {
  lower_elementwise(out, std::array{from}, to, [](std::span<const Number> x) { return x[0]; });
}

plan::TensorId ops::in_f32(plan::Lowering& out, plan::TensorId tensor) {
  if (out.type(tensor).dtype == DType::f32) return tensor;
  const plan::TensorId wide = out.workspace("wide", {DType::f32, out.type(tensor).shape});
  lower_cast(out, tensor, wide);
  return wide;
}

}  // namespace halfstep
