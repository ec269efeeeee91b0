#include "ops/reduce/softmax.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/rows.h"

namespace halfstep {
namespace {

using plan::Access;

/// The push constants of softmax.comp and softmax_gradient.comp.
struct Push {
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t quads_per_row;
};

/// A kernel over the rows of the result, which it writes through an expression; `operands` come before it. It reads
/// each row `passes` times. `constants` are specialization constants 2, 3, ...
void lower_rows(plan::Lowering& out, const std::string& shader, std::vector<plan::Operand> operands,
                std::int64_t passes, const std::vector<std::uint32_t>& constants) {
  const TensorType& type = out.type(out.output(0));
  const plan::Layout lay = plan::layout(type.shape);
  ops::index32(out, lay.padded_elements());
  const ops::RowSpread spread = ops::spread_rows(out, lay, passes);
  const auto result = static_cast<std::uint32_t>(operands.size());
  operands.push_back({out.output(0), Access::write});
  std::vector<std::uint32_t> all{spread.local_size, spread.lanes};
  all.insert(all.end(), constants.begin(), constants.end());
  out.dispatch({.label = {},
                .shader = ops::variant(out, shader, type.dtype),
                .constants = std::move(all),
                .push = plan::push_bytes(Push{ops::index32(out, lay.rows), ops::index32(out, lay.columns),
                                              ops::index32(out, lay.quads_per_row())}),
                .operands = std::move(operands),
                .groups = spread.groups,
                .rounds = spread.rounds,
                .expression = ops::result_expression(out, out.output(0), result, result + 1)});
}

/// dx of softmax or log_softmax over the last axis, from its result y and dy.
class SoftmaxGradient final : public graph::Operator {
 public:
  explicit SoftmaxGradient(bool logarithm) : logarithm_(logarithm) {}

  std::string name() const override { return logarithm_ ? "log_softmax_gradient" : "softmax_gradient"; }
  graph::Attributes attributes() const override { return {}; }
  graph::Numerics numerics() const override { return graph::Numerics::reduction; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_same_float(name(), inputs[0], inputs[1]);
    return {inputs[0]};
  }

  void lower(plan::Lowering& out) const override {
    lower_rows(out, "softmax_gradient", {{out.input(0), Access::read}, {out.input(1), Access::read}}, 2, {logarithm_});
  }

 private:
  bool logarithm_;
};

/// softmax or log_softmax over the last axis.
class Softmax final : public graph::Operator {
 public:
  explicit Softmax(bool logarithm) : logarithm_(logarithm) {}

  std::string name() const override { return logarithm_ ? "log_softmax" : "softmax"; }
  graph::Attributes attributes() const override { return {}; }
  graph::Numerics numerics() const override { return graph::Numerics::reduction; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    ops::expect_float(name(), "a tensor", inputs[0]);
    return {inputs[0]};
  }

  // softmax: dx = y (dy - sum(y dy)); log_softmax: dx = dy - exp(y) sum(dy)
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {ops::apply<SoftmaxGradient>({call.outputs[0], *call.cotangents[0]}, logarithm_)};
  }

  void lower(plan::Lowering& out) const override {
    lower_rows(out, "softmax", {{out.input(0), Access::read}, {out.input(0), Access::read}}, 3, {logarithm_});
  }

 private:
  bool logarithm_;
};

/// softmax of scores {batch, ..., queries, keys} over the keys that a query sees; lengths {batch} or segments {batch,
/// keys} are the second input, if there are any.
class MaskedSoftmax final : public graph::Operator {
 public:
  explicit MaskedSoftmax(const ops::VisibleKeys& visible) : visible_(visible) {}

  std::string name() const override { return "masked_softmax"; }
  graph::Attributes attributes() const override {
    return {{"causal", visible_.causal}, {"window", visible_.window}, {"segments", visible_.segments}};
  }
  graph::Numerics numerics() const override { return graph::Numerics::reduction; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_float(name(), "scores", inputs[0]);
    const Shape& shape = inputs[0].shape;
    if (shape.size() < 2) {
      fail(name(), fmt::format("expected scores {{..., queries, keys}}, got {}", to_string(inputs[0])));
    }
    const Shape padding = visible_.segments ? Shape{shape[0], shape.back()} : Shape{shape[0]};
    if (inputs.size() > 1 && inputs[1] != TensorType{DType::u32, padding}) {
      fail(name(), fmt::format("expected {} u32 {}, got {}", visible_.segments ? "segments" : "lengths",
                               to_string(padding), to_string(inputs[1])));
    }
    return {inputs[0]};
  }

  // dx = y (dy - sum(y dy)), which is 0 where y is
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(call.inputs.size());
    gradients[0] = ops::apply<SoftmaxGradient>({call.outputs[0], *call.cotangents[0]}, false);
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    const Shape shape = out.input_type(0).shape;
    const bool padded = out.input_count() > 1;
    const std::int64_t batch_rows = plan::layout(shape).rows / shape[0];
    const std::int64_t window = std::min(visible_.window, std::max(shape[shape.size() - 2], shape.back()));
    lower_rows(out, "softmax", {{out.input(0), Access::read}, {out.input(padded ? 1 : 0), Access::read}}, 3,
               {false, visible_.causal, ops::index32(out, window), padded && !visible_.segments,
                ops::index32(out, shape[shape.size() - 2]), ops::index32(out, batch_rows), visible_.segments});
  }

 private:
  ops::VisibleKeys visible_;
};

/// Over `axis`, which is moved to the end and back if it is not the last.
Tensor over_axis(const char* name, Tensor x, std::int64_t axis, bool logarithm) {
  const std::int64_t place = axis < 0 ? axis + x.rank() : axis;
  if (place < 0 || place >= x.rank()) {
    fail(name, fmt::format("expected an axis of {}, got {}", to_string(x.type()), axis));
  }
  ops::expect_float(name, "a tensor", x.type());
  if (place + 1 == x.rank()) return ops::apply<Softmax>({x}, logarithm);
  return transpose(ops::apply<Softmax>({transpose(x, place, -1)}, logarithm), place, -1);
}

}  // namespace

Tensor ops::masked_softmax(Tensor scores, const VisibleKeys& visible, std::optional<Tensor> padding) {
  std::vector<Tensor> inputs{scores};
  if (padding) inputs.push_back(*padding);
  return graph::apply_one(std::make_shared<MaskedSoftmax>(visible), inputs);
}

Tensor ops::softmax_gradient(Tensor y, Tensor dy) {
  return ops::apply<SoftmaxGradient>({y, dy}, false);
}

Tensor softmax(Tensor x, std::int64_t axis) {
  return over_axis("softmax", x, axis, false);
}

Tensor log_softmax(Tensor x, std::int64_t axis) {
  return over_axis("log_softmax", x, axis, true);
}

}  // namespace halfstep
