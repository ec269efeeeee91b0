#include "ops/shape/broadcast.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/apply.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expect.h"

namespace halfstep::ops {
namespace {

/// Extent of `shape` along axis `i` of a result of `rank` axes.
std::int64_t extent_at(const Shape& shape, std::size_t rank, std::size_t i) {
  const std::size_t missing = rank - shape.size();
  return i < missing ? 1 : shape[i - missing];
}

std::vector<std::int64_t> repeated_axes(const Shape& result, const Shape& shape) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (extent_at(shape, result.size(), i) != result[i]) axes.push_back(static_cast<std::int64_t>(i));
  }
  return axes;
}

/// The gradient of a sum or mean: x repeated along the axes it lacks, times a factor.
class Expand final : public Elementwise {
 public:
  Expand(TensorType result, float factor)
      : Elementwise("expand", [factor](std::span<const Number> x) { return factor == 1 ? x[0] : x[0] * factor; },
                    {{"shape", result.shape}, {"dtype", result.dtype}, {"factor", factor}}),
        result_(std::move(result)),
        factor_(factor) {}

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_count(name(), inputs, 1);
    expect_float(name(), "a tensor", inputs[0]);
    if (broadcast_shape(name(), inputs[0].shape, result_.shape) != result_.shape) {
      fail(name(), fmt::format("expected a tensor that can be repeated to {}, got {}", to_string(result_.shape),
                               to_string(inputs[0])));
    }
    return {result_};
  }

  // dx = factor * dy summed over the repeated axes
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const TensorType x = call.inputs[0].type();
    const Tensor sum = sum_to_shape(*call.cotangents[0], x.shape);
    const Tensor dx = factor_ == 1 ? sum : scale(sum, factor_);
    return {x.dtype == result_.dtype ? dx : cast(dx, x.dtype)};
  }

 private:
  TensorType result_;
  float factor_;
};

}  // namespace

Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t extent_a = extent_at(a, result.size(), i);
    const std::int64_t extent_b = extent_at(b, result.size(), i);
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1) {
      fail(op, fmt::format("expected shapes that broadcast, got {} and {}", to_string(a), to_string(b)),
           "aligned at the last axis, extents must be equal or 1");
    }
    result[i] = extent_a == 1 ? extent_b : extent_a;
  }
  return result;
}

Tensor sum_to_shape(Tensor gradient, Shape shape) {
  const std::vector<std::int64_t> axes = repeated_axes(gradient.shape(), shape);
  const Tensor summed = axes.empty() ? gradient : sum(gradient, axes);
  return summed.shape() == shape ? summed : reshape(summed, std::move(shape));
}

Tensor expand(Tensor x, TensorType result, float factor) {
  return apply<Expand>({x}, std::move(result), factor);
}

}  // namespace halfstep::ops
