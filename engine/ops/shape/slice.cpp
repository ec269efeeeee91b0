#include "ops/shape/slice.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "graph/ir.h"
#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

constexpr std::size_t most_axes = 5;

/// The constants of slice.comp.
std::vector<std::uint32_t> constants(std::uint32_t local_size, const Shape& x, const Shape& result,
                                     const std::vector<ops::WindowAxis>& axes) {
  using Five = std::array<std::int64_t, most_axes>;  // one per axis, outermost first
  Five extents, x_extents, steps, offsets, divisors;
  for (Five* ones : {&extents, &x_extents, &steps, &divisors}) ones->fill(1);
  offsets.fill(0);
  const std::size_t missing = most_axes - result.size();
  for (std::size_t i = 0; i < result.size(); ++i) {
    extents[missing + i] = result[i];
    x_extents[missing + i] = x[i];
    steps[missing + i] = axes[i].step;
    offsets[missing + i] = axes[i].offset;
    divisors[missing + i] = axes[i].divisor;
  }
  const ops::WindowAxis& last = axes.back();
  const bool whole_quads = last.step == 1 && last.divisor == 1 && last.offset % 4 == 0;
  std::vector<std::uint32_t> all{local_size, whole_quads};
  for (const Five& five : {extents, x_extents, steps, offsets, divisors}) {
    for (const std::int64_t value : five) all.push_back(static_cast<std::uint32_t>(value));
  }
  return all;
}

class Window final : public graph::Operator {
 public:
  Window(Shape shape, std::vector<ops::WindowAxis> axes) : shape_(std::move(shape)), axes_(std::move(axes)) {}

  std::string name() const override { return "window"; }
  graph::Attributes attributes() const override {
    std::vector<std::int64_t> step, offset, divisor;
    for (const ops::WindowAxis& axis : axes_) {
      step.push_back(axis.step);
      offset.push_back(axis.offset);
      divisor.push_back(axis.divisor);
    }
    return {{"shape", shape_}, {"step", step}, {"offset", offset}, {"divisor", divisor}};
  }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    ops::expect_float(name(), "a tensor", inputs[0]);
    return {{inputs[0].dtype, shape_}};
  }

  // Position p comes from q if p step + offset = q divisor; dx takes q from p by the same relation.
  graph::Gradients vjp(const graph::Vjp& call) const override {
    std::vector<ops::WindowAxis> back;
    for (const ops::WindowAxis& axis : axes_) back.push_back({axis.divisor, -axis.offset, axis.step});
    return {ops::window(*call.cotangents[0], call.inputs[0].shape(), std::move(back))};
  }

  void lower(plan::Lowering& out) const override { ops::lower_window(out, out.input(0), out.output(0), axes_); }

  const std::vector<ops::WindowAxis>& axes() const { return axes_; }

 private:
  Shape shape_;
  std::vector<ops::WindowAxis> axes_;
};

bool changes(const ops::WindowAxis& axis, std::int64_t from, std::int64_t to) {
  return axis.step != 1 || axis.offset != 0 || axis.divisor != 1 || from != to;
}

/// A window of a window, which is one of what that is of where no axis is changed by both: x and `axes` become that.
void join_windows(Tensor& x, const Shape& shape, std::vector<ops::WindowAxis>& axes) {
  graph::Ir& ir = graph::ir_of(x);
  const graph::Value& value = ir.values[x.id()];
  if (value.origin != graph::Origin::node) return;
  const graph::Node& producer = ir.nodes[value.producer];
  const auto* const inner = dynamic_cast<const Window*>(producer.op.get());
  if (inner == nullptr) return;
  const Tensor source = ir.tensor(producer.inputs[0]);
  std::vector<ops::WindowAxis> both = axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!changes(inner->axes()[i], source.shape()[i], x.shape()[i])) continue;
    if (changes(axes[i], x.shape()[i], shape[i])) return;
    both[i] = inner->axes()[i];
  }
  axes = std::move(both);
  x = source;
}

void expect_axes(std::string_view op, Tensor x, std::string_view what, std::size_t given) {
  if (x.rank() < 1 || x.shape().size() > most_axes) {
    fail(op, fmt::format("expected a tensor of 1 to {} axes, got {}", most_axes, to_string(x.type())));
  }
  if (given != x.shape().size()) {
    fail(op, fmt::format("expected {} for each axis of {}, got {}", what, to_string(x.shape()), given));
  }
}

}  // namespace

void ops::lower_window(plan::Lowering& out, plan::TensorId x, plan::TensorId result,
                       const std::vector<WindowAxis>& axes) {
  const TensorType type = out.type(result);
  const std::int64_t quads = plan::layout(type.shape).quads();
  const std::uint32_t local_size = plan::flat_local_size(out.target());
  out.dispatch({.label = {},
                .shader = ops::variant(out, "slice", type.dtype),
                .constants = constants(local_size, out.type(x).shape, type.shape, axes),
                .push = plan::push_bytes(index32(out, quads)),
                .operands = {{.tensor = x, .access = plan::Access::read, .most_bytes = plan::byte_size(type)},
                             {result, plan::Access::write}},
                .groups = plan::groups_for(out.target(), quads, local_size),
                .expression = result_expression(out, result, 1, 2)});
}

ops::AxisView ops::view_of_axis(const Shape& shape, std::size_t axis) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const bool last = at + 1 == shape.end();
  const std::int64_t inner = last ? 1 : elements({at + 1, shape.end() - 1});
  Shape view{elements({shape.begin(), at}), *at * inner};
  if (!last) view.push_back(shape.back());
  return {std::move(view), inner};
}

Tensor ops::window(Tensor x, Shape shape, std::vector<WindowAxis> axes) {
  join_windows(x, shape, axes);
  return apply<Window>({x}, std::move(shape), std::move(axes));
}

Tensor slice(Tensor x, const Shape& begin, const Shape& end, const Shape& step) {
  expect_axes("slice", x, "a begin", begin.size());
  expect_axes("slice", x, "an end", end.size());
  if (!step.empty()) expect_axes("slice", x, "a step", step.size());
  Shape shape;
  std::vector<ops::WindowAxis> axes;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    std::int64_t stride = step.empty() ? 1 : step[i];
    if (begin[i] < 0 || begin[i] >= end[i] || end[i] > x.shape()[i] || stride < 1) {
      fail("slice", fmt::format("expected 0 <= begin < end <= {} and a positive step on axis {}, got {}, {}, {}",
                                x.shape()[i], i, begin[i], end[i], stride));
    }
    stride = std::min(stride, end[i] - begin[i]);  // a longer stride also takes only the first element
    shape.push_back((end[i] - begin[i] - 1) / stride + 1);
    axes.push_back({.step = stride, .offset = begin[i]});
  }
  return ops::window(x, std::move(shape), std::move(axes));
}

Tensor pad(Tensor x, const Shape& before, const Shape& after) {
  expect_axes("pad", x, "zeros before", before.size());
  expect_axes("pad", x, "zeros after", after.size());
  constexpr std::int64_t most = 1 << 24;
  Shape shape;
  std::vector<ops::WindowAxis> axes;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] < 0 || after[i] < 0 || before[i] > most || after[i] > most) {
      fail("pad", fmt::format("expected 0 to {} zeros on each side, got {} and {}", most, before[i], after[i]));
    }
    shape.push_back(before[i] + x.shape()[i] + after[i]);
    axes.push_back({.offset = -before[i]});
  }
  graph::check_extents("pad", "the result", shape);
  return ops::window(x, std::move(shape), std::move(axes));
}

}  // namespace halfstep
