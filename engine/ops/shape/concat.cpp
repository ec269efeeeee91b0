#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/shape/slice.h"

namespace halfstep {
namespace {

/// a, then b, along one axis.
class Concat final : public graph::Operator {
 public:
  explicit Concat(std::size_t axis) : axis_(axis) {}

  std::string name() const override { return "concat"; }
  graph::Attributes attributes() const override { return {{"axis", static_cast<std::int64_t>(axis_)}}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_same_float(name(), inputs[0], inputs[1]);
    Shape shape = inputs[0].shape;
    Shape other = inputs[1].shape;
    if (shape.size() == other.size()) {
      shape[axis_] += other[axis_];
      other[axis_] = shape[axis_];
    }
    if (shape != other) {
      fail(name(), fmt::format("expected tensors alike but for axis {}, got {} and {}", axis_, to_string(inputs[0]),
                               to_string(inputs[1])));
    }
    return {{inputs[0].dtype, shape}};
  }

  // da, db: the corresponding parts of dy, of three axes, since slices take no more than 5
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    const ops::AxisView view = ops::view_of_axis(call.cotangents[0]->shape(), axis_);
    const Tensor dy = reshape(*call.cotangents[0], view.shape);
    Shape begin(view.shape.size(), 0);
    Shape end = view.shape;
    for (std::size_t i = 0; i < 2; ++i) {
      const Shape part = call.inputs[i].shape();
      end[1] = begin[1] + part[axis_] * view.inner;
      if (call.needed[i]) gradients[i] = reshape(slice(dy, begin, end), part);
      begin[1] = end[1];
    }
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t quads;
      std::uint32_t a;  // extents of the axis in a, b
      std::uint32_t b;
      std::uint32_t inner;  // quads from one position on the axis to the next, if it is not the last
    };
    const Shape shape = out.type(out.output(0)).shape;
    const bool last = axis_ + 1 == shape.size();
    std::int64_t inner = plan::layout(shape).quads();
    for (std::size_t i = 0; !last && i <= axis_; ++i) inner /= shape[i];
    const std::int64_t quads = plan::layout(shape).quads();
    const Push push{ops::index32(out, quads), ops::index32(out, out.input_type(0).shape[axis_]),
                    ops::index32(out, out.input_type(1).shape[axis_]), ops::index32(out, inner)};
    ops::dispatch_flat(
        out, ops::variant(out, "concat", out.type(out.output(0)).dtype), quads, push,
        {{out.input(0), plan::Access::read}, {out.input(1), plan::Access::read}, {out.output(0), plan::Access::write}},
        {last});
  }

 private:
  std::size_t axis_;
};

/// Concatenates in a binary tree, so that each part is copied at most a logarithmic number of times.
Tensor joined(std::span<const Tensor> parts, std::size_t axis) {
  if (parts.size() == 1) return parts.front();
  const std::size_t half = parts.size() / 2;
  return ops::apply<Concat>({joined(parts.first(half), axis), joined(parts.subspan(half), axis)}, axis);
}

}  // namespace

Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis) {
  if (parts.empty()) fail("concat", "expected at least one tensor, got none");
  const std::int64_t rank = parts.front().rank();
  const std::int64_t place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank) {
    fail("concat", fmt::format("expected an axis of {}, got {}", to_string(parts.front().type()), axis));
  }
  return joined(parts, static_cast<std::size_t>(place));
}

}  // namespace halfstep
