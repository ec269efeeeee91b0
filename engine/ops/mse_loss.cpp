#include <halfstep/ops.h>

#include <algorithm>

#include "ops/apply.h"
#include "ops/cast.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/reduce.h"

namespace halfstep {
namespace {

void expect_pair(std::string_view op, std::span<const TensorType> inputs) {
  ops::expect_float(op, "a prediction", inputs[0]);
  ops::expect_float(op, "a target", inputs[1]);
  ops::expect_same_shape(op, inputs[0], inputs[1]);
}

/// The two tensors in one type: as they are, or both in f32 where they differ.
struct Pair {
  plan::TensorId a;
  plan::TensorId b;
  DType dtype;
};

Pair in_one_type(plan::Lowering& out) {
  const DType dtype = out.input_type(0).dtype;
  if (dtype == out.input_type(1).dtype) return {out.input(0), out.input(1), dtype};
  return {ops::in_f32(out, out.input(0)), ops::in_f32(out, out.input(1)), DType::f32};
}

/// From a, b and the gradient of the loss {}: that of a.
class MseLossGradient final : public graph::Operator {
 public:
  std::string name() const override { return "mse_loss_gradient"; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 3);
    return {inputs[0]};
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t quads;
      float factor;
    };
    const TensorType& type = out.output_type(0);
    const std::int64_t quads = plan::layout(type.shape).quads();
    const Pair pair = in_one_type(out);
    const bool direct = pair.dtype == type.dtype;
    const plan::TensorId to = direct ? out.output(0) : out.workspace("gradient", {pair.dtype, type.shape});
    const Push push{ops::index32(out, quads), 2.0F / static_cast<float>(elements(type.shape))};
    ops::dispatch_flat(out, "mse_loss_gradient." + out.storage(pair.dtype), quads, push,
                       {{pair.a, plan::Access::read},
                        {pair.b, plan::Access::read},
                        {out.input(2), plan::Access::read},
                        {to, plan::Access::write}});
    if (!direct) ops::lower_cast(out, to, out.output(0));
  }
};

class MseLoss final : public graph::Operator {
 public:
  std::string name() const override { return "mse_loss"; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    expect_pair(name(), inputs);
    return {{DType::f32, {}}};
  }

  // da = 2 (a - b) / elements dloss, and db the same with a and b exchanged
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (!call.needed[i]) continue;
      gradients[i] = ops::apply<MseLossGradient>({call.inputs[i], call.inputs[1 - i], *call.cotangents[0]});
    }
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t quads;
      std::uint32_t slices;
    };
    const Pair pair = in_one_type(out);
    const Shape& shape = out.input_type(0).shape;
    const std::int64_t quads = plan::layout(shape).quads();
    const std::int64_t busy = std::int64_t{out.target().wanted_groups} * ops::flat_local_size(out.target());
    const std::int64_t slices = std::min(quads, busy);
    const plan::TensorId partial = out.workspace("partial", {DType::f32, {slices * 4}});
    const Push push{ops::index32(out, quads), ops::index32(out, slices)};
    ops::dispatch_flat(out, "mse_loss." + out.storage(pair.dtype), slices, push,
                       {{pair.a, plan::Access::read}, {pair.b, plan::Access::read}, {partial, plan::Access::write}});
    ops::lower_sum(out, partial, {true}, out.output(0), 1.0F / static_cast<float>(elements(shape)));
  }
};

}  // namespace

Tensor mse_loss(Tensor prediction, Tensor target) {
  return ops::apply<MseLoss>({prediction, target});
}

}  // namespace halfstep
