#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/reduce/reduce.h"
#include "ops/rows.h"

namespace halfstep {
namespace {

using plan::Access;

/// What a norm over the last axis does beside dividing by the root of the mean square.
struct Kind {
  bool centred = true;  ///< subtracts the mean: layer norm; otherwise RMS norm
  bool weighted = true;
  bool biased = true;

  std::string name() const { return centred ? "layer_norm" : "rms_norm"; }
  graph::Attributes attributes() const { return {{"weight", weighted}, {"bias", biased}}; }
};

/// The type of one statistic for each row.
TensorType statistic_of(Shape shape) {
  shape.back() = 1;
  return {DType::f32, std::move(shape)};
}

/// From x, dy, the mean and factor of each row and, if weighted, the weight: dx, and the gradients of weight and bias
/// as far as there are such.
class RowNormGradient final : public graph::Operator {
 public:
  explicit RowNormGradient(Kind kind) : kind_(kind) {}

  std::string name() const override { return kind_.name() + "_gradient"; }
  graph::Attributes attributes() const override { return kind_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, kind_.weighted ? 5 : 4);
    std::vector<TensorType> outputs{inputs[0]};
    const TensorType parameter{inputs[0].dtype, {inputs[0].shape.back()}};
    outputs.resize(1 + std::size_t{kind_.weighted} + std::size_t{kind_.biased}, parameter);
    return outputs;
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t rows, columns, quads_per_row;
    };
    const TensorType type = out.input_type(0);
    const plan::Layout lay = plan::layout(type.shape);
    const ops::RowSpread spread = ops::spread_rows(out, lay, 2);
    const plan::TensorId weight = kind_.weighted ? out.input(4) : out.input(0);
    out.dispatch({.label = {},
                  .shader = ops::variant(out, "row_norm_gradient", type.dtype),
                  .constants = {spread.local_size, spread.lanes, kind_.centred, kind_.weighted},
                  .push = plan::push_bytes(Push{ops::index32(out, lay.rows), ops::index32(out, lay.columns),
                                                ops::index32(out, lay.quads_per_row())}),
                  .operands = {{out.input(0), Access::read},
                               {out.input(1), Access::read},
                               {out.input(2), Access::read},
                               {out.input(3), Access::read},
                               {weight, Access::read},
                               {out.output(0), Access::write}},
                  .groups = spread.groups,
                  .rounds = spread.rounds,
                  .expression = ops::result_expression(out, out.output(0), 5, 6),
                  .mixes = true});
    std::size_t next = 1;
    if (kind_.weighted) lower_weight_gradient(out, out.output(next++));
    if (kind_.biased) ops::lower_column_sums(out, out.input(1), out.output(next));
  }

 private:
  /// The sum of dy times the normalised x, in f32 until it is stored.
  static void lower_weight_gradient(plan::Lowering& out, plan::TensorId result) {
    const TensorType x = out.input_type(0);
    const plan::TensorId products = out.workspace("products", {DType::f32, x.shape});
    const std::array inputs{out.input(0), out.input(1), out.input(2), out.input(3)};
    ops::lower_elementwise(out, inputs, products,
                           [](std::span<const ops::Number> v) { return (v[0] - v[2]) * v[3] * v[1]; });
    ops::lower_column_sums(out, products, result, x.dtype);
  }

  Kind kind_;
};

/// From x {..., c} and, as far as there are such, weight {c} and bias {c}: y, and f32 statistics {..., 1}: the mean of
/// each row and 1 / sqrt(variance + epsilon).
class RowNorm final : public graph::Operator {
 public:
  RowNorm(Kind kind, float epsilon) : kind_(kind), epsilon_(epsilon) {}

  std::string name() const override { return kind_.name(); }
  graph::Attributes attributes() const override {
    graph::Attributes all = kind_.attributes();
    all.push_back({"epsilon", epsilon_});
    return all;
  }
  graph::Numerics numerics() const override { return graph::Numerics::norm; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1 + std::size_t{kind_.weighted} + std::size_t{kind_.biased});
    const TensorType& x = inputs[0];
    ops::expect_float(name(), "x", x);
    if (x.shape.empty()) fail(name(), fmt::format("expected x {{..., c}}, got {}", to_string(x)));
    const TensorType parameter{x.dtype, {x.shape.back()}};
    for (const TensorType& input : inputs.subspan(1)) {
      if (input != parameter) {
        fail(name(), fmt::format("expected a weight or bias {}, got {}", to_string(parameter), to_string(input)));
      }
    }
    return {x, statistic_of(x.shape), statistic_of(x.shape)};
  }

  // with n = (x - mean) / std: dweight = sum(dy n), dbias = sum(dy), over all rows;
  // dx = (weight dy - mean(weight dy) - n mean(weight dy n)) / std, means over a row; RMS norm has no mean(weight dy)
  graph::Gradients vjp(const graph::Vjp& call) const override {
    std::vector<Tensor> inputs{call.inputs[0], *call.cotangents[0], call.outputs[1], call.outputs[2]};
    if (kind_.weighted) inputs.push_back(call.inputs[1]);
    const std::vector<Tensor> found = graph::apply(std::make_shared<RowNormGradient>(kind_), inputs);
    return {found.begin(), found.end()};
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t rows, columns, quads_per_row;
      float epsilon;
    };
    const TensorType type = out.input_type(0);
    const plan::Layout lay = plan::layout(type.shape);
    ops::index32(out, lay.padded_elements());
    const ops::RowSpread spread = ops::spread_rows(out, lay, 3);
    const plan::TensorId weight = kind_.weighted ? out.input(1) : out.input(0);
    const plan::TensorId bias = kind_.biased ? out.input(out.input_count() - 1) : out.input(0);
    out.dispatch({.label = {},
                  .shader = ops::variant(out, "row_norm", type.dtype),
                  .constants = {spread.local_size, spread.lanes, kind_.centred, kind_.weighted, kind_.biased},
                  .push = plan::push_bytes(Push{ops::index32(out, lay.rows), ops::index32(out, lay.columns),
                                                ops::index32(out, lay.quads_per_row()), epsilon_}),
                  .operands = {{out.input(0), Access::read},
                               {weight, Access::read},
                               {bias, Access::read},
                               {out.output(1), Access::write},
                               {out.output(2), Access::write},
                               {out.output(0), Access::write}},
                  .groups = spread.groups,
                  .rounds = spread.rounds,
                  .expression = ops::result_expression(out, out.output(0), 5, 6),
                  .mixes = true});
  }

 private:
  Kind kind_;
  float epsilon_;
};

Tensor row_norm(Tensor x, std::optional<Tensor> weight, std::optional<Tensor> bias, float epsilon, bool centred) {
  const Kind kind{.centred = centred, .weighted = weight.has_value(), .biased = bias.has_value()};
  ops::expect_epsilon(kind.name(), epsilon);
  std::vector<Tensor> inputs{x};
  if (weight) inputs.push_back(*weight);
  if (bias) inputs.push_back(*bias);
  return graph::apply(std::make_shared<RowNorm>(kind, epsilon), inputs).front();
}

}  // namespace

Tensor layer_norm(Tensor x, std::optional<Tensor> weight, std::optional<Tensor> bias, float epsilon) {
  return row_norm(x, weight, bias, epsilon, true);
}

Tensor rms_norm(Tensor x, std::optional<Tensor> weight, float epsilon) {
  return row_norm(x, weight, std::nullopt, epsilon, false);
}

}  // namespace halfstep
