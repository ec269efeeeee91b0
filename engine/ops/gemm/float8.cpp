#include "ops/gemm/float8.h"

#include <halfstep/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "graph/operator.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expect.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/rows_of.h"
#include "ops/kernel.h"
#include "ops/rows.h"

namespace halfstep::ops {
namespace {

using plan::Access;

/// Appends the dispatch that finds the largest magnitude in each of `rows` parts of `source`; from the last one, of
/// one part, the scale and its reciprocal.
void lower_largest(plan::Lowering& out, plan::TensorId source, std::int64_t rows, plan::TensorId result,
                   std::optional<plan::TensorId> unit) {
  struct Push {
    std::uint32_t rows, row_quads, quads;
  };
  const TensorType type = out.type(source);
  const std::int64_t quads = plan::layout(type.shape).quads();
  const std::int64_t row_quads = plan::divided_up(quads, rows);
  const RowSpread spread = spread_rows(out, plan::layout({rows, 4 * row_quads}), 1);
  out.dispatch({.label = {},
                .shader = variant(out, "float8_scale", type.dtype),
                .constants = {spread.local_size, spread.lanes, unit.has_value()},
                .push = plan::push_bytes(Push{index32(out, rows), index32(out, row_quads), index32(out, quads)}),
                .operands = {{source, Access::read}, {result, Access::write}, {unit.value_or(result), Access::write}},
                .groups = spread.groups,
                .rounds = spread.rounds});
}

/// Parts of `quads` quads that are looked at apart: enough to occupy the device, and as long as their results are many.
std::int64_t parts_of(const plan::Target& target, std::int64_t quads) {
  constexpr std::int64_t least_quads = 256;
  const std::int64_t most = target.cpu ? std::int64_t{4} * target.wanted_groups : 1024;
  const std::int64_t needed = plan::divided_up(quads, std::int64_t{target.max_rounds} / 2);
  return std::max(std::clamp<std::int64_t>(quads / least_quads, 1, most), needed);
}

/// Appends the dispatches that find a tensor's scale and its reciprocal.
void lower_scale(plan::Lowering& out, plan::TensorId source, plan::TensorId scale, plan::TensorId unit) {
  for (;;) {
    const std::int64_t parts = parts_of(out.target(), plan::layout(out.type(source).shape).quads());
    if (parts == 1) return lower_largest(out, source, 1, scale, unit);
    const plan::TensorId largest = out.workspace("largest", {DType::f32, {parts, 1}});
    lower_largest(out, source, parts, largest, std::nullopt);
    source = largest;
  }
}

/// The outputs of to_float8().
class ToFloat8 final : public graph::Operator {
 public:
  std::string name() const override { return "to_float8"; }
  graph::Attributes attributes() const override { return {}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_count(name(), inputs, 1);
    return {{DType::f16, inputs[0].shape}, {DType::f32, {}}};
  }

  graph::Gradients vjp(const graph::Vjp& call) const override { return {*call.cotangents[0]}; }

  void lower(plan::Lowering& out) const override {
    const plan::TensorId scale = out.workspace("scale", {DType::f32, {}});
    lower_scale(out, out.input(0), scale, out.output(1));
    lower_elementwise(out, std::array{out.input(0), scale}, out.output(0),
                      [](std::span<const Number> x) { return float8(x[0] * x[1]); });
  }
};

Float8 product_inputs(std::span<const Tensor> inputs, std::size_t first) {
  return {inputs[first], inputs[first + 1]};
}

Tensor product(const Float8& a, const Float8& b, MatmulOptions options, std::optional<Tensor> bias = std::nullopt);

/// A product of matrices of to_float8(), in f16, plus a bias for each column where there is one. Its inputs are values
/// and units of a, then of b, then the bias. The gradients of values are those of what was rounded to them.
class Float8Product final : public graph::Operator {
 public:
  explicit Float8Product(MatmulOptions options) : options_(options) {}

  std::string name() const override { return "float8_matmul"; }
  graph::Attributes attributes() const override {
    return {{"transpose_a", options_.transpose_a}, {"transpose_b", options_.transpose_b}};
  }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (inputs.size() != 5) expect_count(name(), inputs, 4);
    return {{DType::f16, {rows(inputs[0].shape), columns(inputs[2].shape)}}};
  }

  // As of matmul; see there.
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const auto [ta, tb] = options_;
    const Float8 a = product_inputs(call.inputs, 0);
    const Float8 b = product_inputs(call.inputs, 2);
    const Float8 dc = to_float8(*call.cotangents[0]);
    graph::Gradients gradients(call.inputs.size());
    if (call.needed[0]) gradients[0] = ta ? product(b, dc, {tb, true}) : product(dc, b, {false, !tb});
    if (call.needed[2]) gradients[2] = tb ? product(dc, a, {true, ta}) : product(a, dc, {!ta, false});
    if (gradients.size() == 5 && call.needed[4]) gradients[4] = sum(*call.cotangents[0], {0});
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    const Shape a = out.input_type(0).shape;
    const Shape c = out.type(out.output(0)).shape;
    const plan::TensorId sums = out.workspace("sums", {DType::f32, c});
    constexpr std::array<std::array<Operands, 2>, 2> operands{
        {{Operands::row_row, Operands::row_col}, {Operands::col_row, Operands::col_col}}};
    lower_gemm(out, {.operands = operands[options_.transpose_a ? 1 : 0][options_.transpose_b ? 1 : 0],
                     .a = out.input(0),
                     .b = out.input(2),
                     .c = sums,
                     .rows = c[0],
                     .columns = c[1],
                     .k = options_.transpose_a ? a[0] : a[1],
                     .float8 = true});
    std::vector<plan::TensorId> inputs{sums, out.input(1), out.input(3)};
    if (out.input_count() == 5) inputs.push_back(out.input(4));
    lower_elementwise(out, inputs, out.output(0), [](std::span<const Number> x) {
      const Number unscaled = x[0] * x[1] * x[2];
      return x.size() == 4 ? unscaled + x[3] : unscaled;
    });
  }

 private:
  std::int64_t rows(const Shape& a) const { return options_.transpose_a ? a[1] : a[0]; }
  std::int64_t columns(const Shape& b) const { return options_.transpose_b ? b[0] : b[1]; }

  MatmulOptions options_;
};

Tensor product(const Float8& a, const Float8& b, MatmulOptions options, std::optional<Tensor> bias) {
  std::vector<Tensor> inputs{a.values, a.unit, b.values, b.unit};
  if (bias) inputs.push_back(*bias);
  return graph::apply_one(std::make_shared<Float8Product>(options), inputs);
}

}  // namespace

float nearest_float8(float value) {
  const float magnitude = std::abs(value);
  const int exponent = magnitude < 0x1p-14F ? -14 : std::ilogb(magnitude);
  const float unit = std::ldexp(1.0F, exponent - 3);  // between numbers around it
  return std::copysign(std::min(std::nearbyint(magnitude / unit) * unit, 1.75F), value);
}

Float8 to_float8(Tensor x) {
  const Tensor inputs[] = {x};
  const std::vector<Tensor> both = graph::apply(std::make_shared<ToFloat8>(), inputs);
  return {both[0], both[1]};
}

Tensor float8_linear(Tensor x, Tensor weight, std::optional<Tensor> bias) {
  Shape shape = x.shape();
  shape.back() = weight.shape().back();
  return reshape(product(to_float8(rows_of(x)), to_float8(weight), {}, bias), shape);
}

}  // namespace halfstep::ops
