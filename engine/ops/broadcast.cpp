#include "ops/broadcast.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

/// One axis of the result and how far each operand moves along it, in quads.
struct Axis {
  std::int64_t extent;
  std::int64_t stride_a;
  std::int64_t stride_b;
};

/// Extent of `shape` along axis `i` of a result of `rank` axes.
std::int64_t extent_at(const Shape& shape, std::size_t rank, std::size_t i) {
  const std::size_t missing = rank - shape.size();
  return i < missing ? 1 : shape[i - missing];
}

/// Strides in quads, 0 where `shape` is repeated; the last axis counts quads too.
std::vector<std::int64_t> quad_strides(const Shape& result, const Shape& shape) {
  std::vector<std::int64_t> strides(result.size());
  std::int64_t stride = 1;
  for (std::size_t i = result.size(); i-- > 0;) {
    const std::int64_t extent = extent_at(shape, result.size(), i);
    strides[i] = extent == result[i] ? stride : 0;
    stride *= i + 1 == result.size() ? plan::layout(shape).quads_per_row() : extent;
  }
  return strides;
}

/// The axes, outermost first, without those of extent 1 and with those merged that both operands walk alike.
std::vector<Axis> merged_axes(const Shape& result, const Shape& a, const Shape& b) {
  const std::vector<std::int64_t> strides_a = quad_strides(result, a);
  const std::vector<std::int64_t> strides_b = quad_strides(result, b);
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const bool last = i + 1 == result.size();
    const Axis axis{last ? plan::layout(result).quads_per_row() : result[i], strides_a[i], strides_b[i]};
    const bool mergeable = !axes.empty() && axes.back().stride_a == axis.extent * axis.stride_a &&
                           axes.back().stride_b == axis.extent * axis.stride_b;
    if (axis.extent == 1) continue;
    if (mergeable) {
      axes.back() = {axes.back().extent * axis.extent, axis.stride_a, axis.stride_b};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

std::vector<std::int64_t> repeated_axes(const Shape& result, const Shape& shape) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (extent_at(shape, result.size(), i) != result[i]) axes.push_back(static_cast<std::int64_t>(i));
  }
  return axes;
}

/// The gradient of a sum: x repeated along the axes it lacks.
class Expand final : public graph::Operator {
 public:
  Expand(Shape shape, float factor) : shape_(std::move(shape)), factor_(factor) {}

  std::string name() const override { return "expand"; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_count(name(), inputs, 1);
    expect_float(name(), "a tensor", inputs[0]);
    if (broadcast_shape(name(), inputs[0].shape, shape_) != shape_) {
      fail(name(), fmt::format("expected a tensor that can be repeated to {}, got {}", to_string(shape_),
                               to_string(inputs[0])));
    }
    return {{inputs[0].dtype, shape_}};
  }

  // dx = factor * dy summed over the repeated axes
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor sum = sum_to_shape(*call.cotangents[0], call.inputs[0].shape());
    return {factor_ == 1 ? sum : scale(sum, factor_)};
  }

  void lower(plan::Lowering& out) const override {
    const Shape from = out.input_type(0).shape;
    const Broadcast plan = plan_broadcast(out, shape_, from, from, factor_);
    dispatch_flat(out, "expand." + out.storage(out.output_type(0).dtype), plan::layout(shape_).quads(), plan.push,
                  {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}}, plan.constants);
  }

 private:
  Shape shape_;
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

Broadcast plan_broadcast(const plan::Lowering& out, const Shape& result, const Shape& a, const Shape& b, float factor) {
  const plan::Layout lay = plan::layout(result);
  Broadcast plan{};
  plan.push.quads = index32(out, lay.quads());
  plan.push.quads_per_row = index32(out, lay.quads_per_row());
  plan.push.columns = index32(out, lay.columns);
  plan.push.factor = factor;
  const bool spread_a = plan::layout(a).columns != lay.columns;
  const bool spread_b = plan::layout(b).columns != lay.columns;
  const bool clear_pad = lay.columns != lay.pitch;
  if (a == result && b == result) {
    plan.constants = {0, 0, 0, clear_pad};
    return plan;
  }
  std::vector<Axis> axes = merged_axes(result, a, b);
  if (axes.empty()) axes.push_back({1, 0, 0});
  if (axes.size() > plan.push.extents.size()) {
    fail(out.label(), fmt::format("expected shapes that broadcast along at most {} groups of axes, got {} and {}",
                                  plan.push.extents.size(), to_string(a), to_string(b)));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    plan.push.extents[i] = index32(out, axes[i].extent);
    plan.push.strides_a[i] = index32(out, axes[i].stride_a);
    plan.push.strides_b[i] = index32(out, axes[i].stride_b);
  }
  plan.constants = {static_cast<std::uint32_t>(axes.size()), spread_a, spread_b, clear_pad};
  return plan;
}

Tensor sum_to_shape(Tensor gradient, Shape shape) {
  const std::vector<std::int64_t> axes = repeated_axes(gradient.shape(), shape);
  const Tensor summed = axes.empty() ? gradient : sum(gradient, axes);
  return summed.shape() == shape ? summed : reshape(summed, std::move(shape));
}

Tensor expand(Tensor x, Shape shape, float factor) {
  return apply<Expand>({x}, std::move(shape), factor);
}

}  // namespace halfstep::ops
