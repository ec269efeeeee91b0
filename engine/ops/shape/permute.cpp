#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

constexpr std::size_t most_outer = 7;  ///< axes beside those that are or become the last: OUTER in permute.comp

/// The work of permute.comp; its strides are in rows.
struct Moves {
  struct Axis {
    std::int64_t extent, x_stride, y_stride;
  };
  std::vector<Axis> outer{};  ///< outermost of the result first
  std::int64_t x_columns = 1;
  std::int64_t y_columns = 1;
  std::int64_t x_stride = 0;  ///< of the result's last axis in x
  std::int64_t y_stride = 0;  ///< of x's last axis in the result
  bool last_stays = true;

  bool moves_nothing() const { return last_stays && outer.size() <= 1; }
};

/// The rows from one position of each axis to the next; 0 for the last axis.
std::vector<std::int64_t> row_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size(), 0);
  std::int64_t rows = 1;
  for (std::size_t i = shape.size() - 1; i-- > 0; rows *= shape[i]) strides[i] = rows;
  return strides;
}

/// Appends an axis inside the others, merged with the previous one if they are adjacent in both tensors.
void append(std::vector<Moves::Axis>& axes, const Moves::Axis& axis) {
  if (axis.extent == 1) return;
  if (!axes.empty()) {
    Moves::Axis& last = axes.back();
    if (last.x_stride == axis.extent * axis.x_stride && last.y_stride == axis.extent * axis.y_stride) {
      last = {last.extent * axis.extent, axis.x_stride, axis.y_stride};
      return;
    }
  }
  axes.push_back(axis);
}

Moves moves_of(const Shape& x, const Shape& y, const std::vector<std::int64_t>& axes) {
  const std::vector<std::int64_t> x_strides = row_strides(x);
  const std::vector<std::int64_t> y_strides = row_strides(y);
  const std::size_t last = x.size() - 1;
  Moves moves{.x_columns = x.back(), .y_columns = y.back()};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto source = static_cast<std::size_t>(axes[i]);
    if (i == last && source == last) continue;
    if (i == last) {
      moves.x_stride = x_strides[source];
      moves.last_stays = false;
    } else if (source == last) {
      moves.y_stride = y_strides[i];
    } else {
      append(moves.outer, {x[source], x_strides[source], y_strides[i]});
    }
  }
  return moves;
}

/// The axes of x in another order: axis i of the result is axis axes[i] of x.
class Permute final : public graph::Operator {
 public:
  explicit Permute(std::vector<std::int64_t> axes) : axes_(std::move(axes)) {}

  std::string name() const override { return "permute"; }
  graph::Attributes attributes() const override { return {{"axes", axes_}}; }
  bool moves_bits(std::span<const TensorType> /*inputs*/) const override { return true; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    Shape shape;
    for (const std::int64_t axis : axes_) shape.push_back(inputs[0].shape[static_cast<std::size_t>(axis)]);
    return {{inputs[0].dtype, shape}};
  }

  // dx = dy with its axes in x's order
  graph::Gradients vjp(const graph::Vjp& call) const override {
    std::vector<std::int64_t> back(axes_.size());
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      back[static_cast<std::size_t>(axes_[i])] = static_cast<std::int64_t>(i);
    }
    return {permute(*call.cotangents[0], back)};
  }

  void lower(plan::Lowering& out) const override {
    const Shape x = out.input_type(0).shape;
    const Shape y = out.type(out.output(0)).shape;
    const Moves moves = moves_of(x, y, axes_);
    if (moves.moves_nothing()) return out.alias(0, 0);
    if (moves.outer.size() > most_outer) {
      fail(out.label(),
           fmt::format("expected axes that move in at most {} groups, got {}", most_outer + 2, moves.outer.size() + 2));
    }
    std::int64_t invocations = plan::layout({moves.y_columns}).quads_per_row();
    if (!moves.last_stays) invocations *= plan::layout({moves.x_columns}).quads_per_row();
    for (const Moves::Axis& axis : moves.outer) invocations *= axis.extent;
    ops::index32(out, std::max(plan::layout(x).quads(), plan::layout(y).quads()));
    ops::dispatch_flat(
        out, fmt::format("permute.{}", bytes(out.input_type(0).dtype) * 8), invocations, ops::index32(out, invocations),
        {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}}, constants(out, moves));
  }

 private:
  /// From constant 1 of permute.comp on.
  static std::vector<std::uint32_t> constants(const plan::Lowering& out, const Moves& moves) {
    std::vector<std::uint32_t> result{moves.last_stays};
    for (const std::int64_t value : {moves.x_columns, moves.y_columns, moves.x_stride, moves.y_stride}) {
      result.push_back(ops::index32(out, value));
    }
    std::array<std::uint32_t, 3 * most_outer> outer{};
    std::fill_n(outer.begin(), most_outer, 1);
    for (std::size_t i = 0; i < moves.outer.size(); ++i) {
      outer[i] = ops::index32(out, moves.outer[i].extent);
      outer[most_outer + i] = ops::index32(out, moves.outer[i].x_stride);
      outer[2 * most_outer + i] = ops::index32(out, moves.outer[i].y_stride);
    }
    result.insert(result.end(), outer.begin(), outer.end());
    return result;
  }

  std::vector<std::int64_t> axes_;
};

}  // namespace

Tensor permute(Tensor x, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> order;
  for (const std::int64_t axis : axes) order.push_back(axis < 0 ? axis + x.rank() : axis);
  std::vector<std::int64_t> all(static_cast<std::size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  if (!std::ranges::is_permutation(order, all)) {
    fail("permute", fmt::format("expected every axis of {} once, got {}", to_string(x.type()), to_string(axes)));
  }
  if (order == all) return x;
  return ops::apply<Permute>({x}, std::move(order));
}

Tensor transpose(Tensor x, std::int64_t a, std::int64_t b) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  const auto place = [&](std::int64_t axis) {
    const std::int64_t positive = axis < 0 ? axis + x.rank() : axis;
    if (positive >= 0 && positive < x.rank()) return static_cast<std::size_t>(positive);
    fail("transpose", fmt::format("expected axes of {}, got {}", to_string(x.type()), axis));
  };
  std::swap(axes[place(a)], axes[place(b)]);
  return permute(x, axes);
}

}  // namespace halfstep
