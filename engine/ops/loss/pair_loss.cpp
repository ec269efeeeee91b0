#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/apply.h"
#include "ops/elementwise/cast.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/reduce/reduce.h"

namespace halfstep {
namespace {

/// Which loss of shaders/loss/pair_loss.glsl, and its parameter if it has one.
struct Kind {
  std::string name;
  float parameter = 0;
};

/// The two tensors in one type: unchanged, or both in f32 if their types differ.
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

/// Push constants of both kernels.
struct Push {
  std::uint32_t quads;
  std::uint32_t quads_per_row;
  std::uint32_t columns;
  std::uint32_t slices;
  float factor;
  float parameter;
};

Push push_for(const plan::Lowering& out, const Kind& kind) {
  const Shape shape = out.input_type(0).shape;
  const plan::Layout lay = plan::layout(shape);
  Push push{};
  push.quads = ops::index32(out, lay.quads());
  push.quads_per_row = ops::index32(out, lay.quads_per_row());
  push.columns = ops::index32(out, lay.columns);
  push.factor = 1.0F / static_cast<float>(elements(shape));
  push.parameter = kind.parameter;
  return push;
}

/// From a, b and the gradient of the loss {}: the gradient of a or of b.
class PairLossGradient final : public graph::Operator {
 public:
  PairLossGradient(Kind kind, std::uint32_t side) : kind_(std::move(kind)), side_(side) {}

  std::string name() const override { return kind_.name + "_gradient"; }
  graph::Attributes attributes() const override {
    return {{"parameter", kind_.parameter}, {"side", std::int64_t{side_}}};
  }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 3);
    return {inputs[side_]};
  }

  void lower(plan::Lowering& out) const override {
    const TensorType& type = out.type(out.output(0));
    const Pair pair = in_one_type(out);
    const bool direct = pair.dtype == type.dtype;
    const plan::TensorId to = direct ? out.output(0) : out.workspace("gradient", {pair.dtype, type.shape});
    const Push push = push_for(out, kind_);
    ops::dispatch_flat(out,
                       fmt::format("pair_loss_gradient.{}.{}", kind_.name, plan::storage(out.target(), pair.dtype)),
                       push.quads, push,
                       {{pair.a, plan::Access::read},
                        {pair.b, plan::Access::read},
                        {out.input(2), plan::Access::read},
                        {to, plan::Access::write}},
                       {side_});
    if (!direct) ops::lower_cast(out, to, out.output(0));
  }

 private:
  Kind kind_;
  std::uint32_t side_;
};

/// The mean over all elements of a function of two tensors.
class PairLoss final : public graph::Operator {
 public:
  explicit PairLoss(Kind kind) : kind_(std::move(kind)) {}

  std::string name() const override { return kind_.name; }
  graph::Attributes attributes() const override { return {{"parameter", kind_.parameter}}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_float(name(), "a prediction", inputs[0]);
    ops::expect_float(name(), "a target", inputs[1]);
    ops::expect_same_shape(name(), inputs[0], inputs[1]);
    return {{DType::f32, {}}};
  }

  // da = dloss / elements times the function's derivative for a, and db that for b
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    for (std::uint32_t side = 0; side < 2; ++side) {
      if (!call.needed[side]) continue;
      gradients[side] =
          ops::apply<PairLossGradient>({call.inputs[0], call.inputs[1], *call.cotangents[0]}, kind_, side);
    }
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    const Pair pair = in_one_type(out);
    Push push = push_for(out, kind_);
    const std::int64_t busy = std::int64_t{out.target().wanted_groups} * plan::flat_local_size(out.target());
    const std::int64_t least = plan::divided_up(push.quads, std::int64_t{out.target().max_rounds} - 1);
    const std::int64_t slices = std::max(least, std::min<std::int64_t>(push.quads, busy));
    push.slices = ops::index32(out, slices);
    const plan::TensorId partial = out.workspace("partial", {DType::f32, {slices * 4}});
    ops::dispatch_flat(out, fmt::format("pair_loss.{}.{}", kind_.name, plan::storage(out.target(), pair.dtype)), slices,
                       push,
                       {{pair.a, plan::Access::read}, {pair.b, plan::Access::read}, {partial, plan::Access::write}}, {},
                       {.rounds = plan::divided_up(push.quads, slices) + 1});
    ops::lower_sum(out, partial, {true}, out.output(0), push.factor);
  }

 private:
  Kind kind_;
};

}  // namespace

Tensor mse_loss(Tensor prediction, Tensor target) {
  return ops::apply<PairLoss>({prediction, target}, Kind{"mse_loss"});
}

Tensor l1_loss(Tensor prediction, Tensor target) {
  return ops::apply<PairLoss>({prediction, target}, Kind{"l1_loss"});
}

Tensor huber_loss(Tensor prediction, Tensor target, float delta) {
  if (!std::isfinite(delta) || delta <= 0) fail("huber_loss", fmt::format("expected a delta above 0, got {}", delta));
  return ops::apply<PairLoss>({prediction, target}, Kind{"huber_loss", delta});
}

Tensor binary_cross_entropy(Tensor logits, Tensor targets) {
  return ops::apply<PairLoss>({logits, targets}, Kind{"binary_cross_entropy"});
}

}  // namespace halfstep
