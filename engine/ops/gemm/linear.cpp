#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/gemm/float8.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/rows_of.h"
#include "ops/shape/broadcast.h"
#include "ops/with_affine.h"

namespace halfstep {
namespace {

/// The gradients of `linear` for the weight {in, out} and the bias {out}, of x {..., in} and the cotangent {..., out}.
class ParameterGradients final : public graph::Operator {
 public:
  std::string name() const override { return "linear_weight_gradient"; }
  graph::Attributes attributes() const override { return {}; }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_same_float(name(), inputs[0], inputs[1]);
    const std::int64_t out = inputs[1].shape.back();
    return {{inputs[0].dtype, {inputs[0].shape.back(), out}}, {inputs[0].dtype, {out}}};
  }

  // It is linear in both: <u, dW> = <x u, dy>, and <v, db> = <v, dy>.
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor x = call.inputs[0];
    const Tensor dy = call.inputs[1];
    const std::optional<Tensor>& u = call.cotangents[0];
    const std::optional<Tensor>& v = call.cotangents[1];
    graph::Gradients gradients(2);
    if (call.needed[0] && u) gradients[0] = reshape(matmul(ops::rows_of(dy), *u, {false, true}), x.shape());
    if (call.needed[1]) gradients[1] = u ? linear(x, *u, v) : ops::expand(*v, dy.type());
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    const plan::Layout x = plan::layout(out.input_type(0).shape);
    ops::lower_gemm(out, {.operands = ops::Operands::col_row,
                          .a = out.input(0),
                          .b = out.input(1),
                          .c = out.output(0),
                          .column_sums = out.output(1),
                          .rows = x.columns,
                          .columns = out.type(out.output(1)).shape.back(),
                          .k = x.rows,
                          .partials = out.partials().matmul});
  }
};

/// A product with a weight matrix, plus a bias if there are three inputs.
class Linear final : public graph::Operator {
 public:
  std::string name() const override { return "linear"; }
  graph::Attributes attributes() const override { return {}; }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (inputs.size() != 3) ops::expect_count(name(), inputs, 2);
    const TensorType& x = inputs[0];
    const TensorType& weight = inputs[1];
    ops::expect_same_float(name(), x, weight);
    ops::expect_rank(name(), "weight", weight, 2, "{in, out}");
    if (x.shape.empty() || x.shape.back() != weight.shape[0]) {
      fail(name(), fmt::format("expected x {{..., {}}} for weight {}, got {}", weight.shape[0], to_string(weight),
                               to_string(x)));
    }
    if (inputs.size() == 3) expect_bias(weight, inputs[2]);
    Shape shape = x.shape;
    shape.back() = weight.shape[1];
    return {{x.dtype, shape}};
  }

  // dx = dy W^T,  dW = x^T dy,  db = the sum of dy's rows
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor x = call.inputs[0];
    const Tensor weight = call.inputs[1];
    const Tensor dy = *call.cotangents[0];
    graph::Gradients gradients(call.inputs.size());
    const bool bias_needed = gradients.size() == 3 && call.needed[2];
    if (call.needed[0]) gradients[0] = reshape(matmul(ops::rows_of(dy), weight, {false, true}), x.shape());
    if (call.needed[1] && bias_needed) {
      const Tensor inputs[] = {x, dy};
      const std::vector<Tensor> both = graph::apply(std::make_shared<ParameterGradients>(), inputs);
      gradients[1] = both[0];
      gradients[2] = both[1];
    } else if (call.needed[1]) {
      gradients[1] = matmul(ops::rows_of(x), ops::rows_of(dy), {true, false});
    } else if (bias_needed) {
      gradients[2] = sum(ops::rows_of(dy), {0});
    }
    return gradients;
  }

  std::optional<Tensor> with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset) const override {
    const auto folded = ops::with_affine(inputs, factor, offset);
    if (!folded) return {};
    return linear(inputs[0], folded->weight, folded->bias);
  }

  std::optional<Tensor> in_float8(std::span<const Tensor> inputs) const override {
    return ops::float8_linear(inputs[0], inputs[1], inputs.size() == 3 ? std::optional(inputs[2]) : std::nullopt);
  }

  void lower(plan::Lowering& out) const override {
    const plan::Layout x = plan::layout(out.input_type(0).shape);
    ops::Gemm gemm{.operands = ops::Operands::row_row,
                   .a = out.input(0),
                   .b = out.input(1),
                   .c = out.output(0),
                   .rows = x.rows,
                   .columns = out.type(out.output(0)).shape.back(),
                   .k = x.columns,
                   .partials = out.partials().matmul};
    if (out.input_count() == 3) gemm.bias = out.input(2);
    ops::lower_gemm(out, gemm);
  }

 private:
  void expect_bias(const TensorType& weight, const TensorType& bias) const {
    ops::expect_same_float(name(), weight, bias);
    if (bias.shape == Shape{weight.shape[1]}) return;
    fail(name(), fmt::format("expected bias {{{}}} for weight {}, got {}", weight.shape[1], to_string(weight),
                             to_string(bias)));
  }
};

}  // namespace

Tensor linear(Tensor x, Tensor weight, std::optional<Tensor> bias) {
  if (bias) return ops::apply<Linear>({x, weight, *bias});
  return ops::apply<Linear>({x, weight});
}

}  // namespace halfstep
