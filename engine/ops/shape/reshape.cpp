#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

/// `count` divided by every extent of `shape`; no value if there is a remainder. Cannot overflow.
std::optional<std::int64_t> count_left(std::int64_t count, const Shape& shape) {
  for (const std::int64_t extent : shape) {
    if (extent < 1 || count % extent != 0) return std::nullopt;
    count /= extent;
  }
  return count;
}

/// The same elements with another shape.
class Reshape final : public graph::Operator {
 public:
  explicit Reshape(Shape shape) : shape_(std::move(shape)) {}

  std::string name() const override { return "reshape"; }
  graph::Attributes attributes() const override { return {{"shape", shape_}}; }
  bool moves_bits(std::span<const TensorType> /*inputs*/) const override { return true; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    if (count_left(elements(inputs[0].shape), shape_) != 1) {
      fail(name(), fmt::format("expected a shape of {} elements, as {} has, got {}", elements(inputs[0].shape),
                               to_string(inputs[0]), to_string(shape_)));
    }
    return {{inputs[0].dtype, shape_}};
  }

  // dx = dy in x's shape
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {reshape(*call.cotangents[0], call.inputs[0].shape())};
  }

  void lower(plan::Lowering& out) const override {
    const plan::Layout from = plan::layout(out.input_type(0).shape);
    const plan::Layout to = plan::layout(shape_);
    const bool unpadded = from.columns == from.pitch && to.columns == to.pitch;
    if (unpadded || from.columns == to.columns) return out.alias(0, 0);
    ops::index32(out, std::max(from.padded_elements(), to.padded_elements()));
    ops::dispatch_flat(out, fmt::format("reshape.{}", bytes(out.input_type(0).dtype) * 8), to.quads(),
                       ops::index32(out, to.quads()),
                       {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}},
                       {ops::index32(out, from.columns), ops::index32(out, from.pitch), ops::index32(out, to.columns),
                        ops::index32(out, to.pitch)});
  }

 private:
  Shape shape_;
};

/// `shape` with its -1 inferred for `count` elements.
Shape with_inferred(Shape shape, std::int64_t count) {
  const auto unknown = std::ranges::count(shape, -1);
  if (unknown > 1) fail("reshape", fmt::format("expected at most one extent of -1, got {}", to_string(shape)));
  if (unknown == 0) return shape;
  const auto place = std::ranges::find(shape, -1);
  *place = 1;
  const std::optional<std::int64_t> left = count_left(count, shape);
  *place = left.value_or(-1);
  if (!left) fail("reshape", fmt::format("expected a shape that {} elements fit, got {}", count, to_string(shape)));
  return shape;
}

}  // namespace

Tensor reshape(Tensor x, Shape shape) {
  Shape known = with_inferred(std::move(shape), elements(x.shape()));
  if (known == x.shape()) return x;
  return ops::apply<Reshape>({x}, std::move(known));
}

Tensor flatten(Tensor x) {
  if (x.rank() == 0) fail("flatten", "expected a tensor with a batch axis, got a scalar");
  return reshape(x, {x.dim(0), -1});
}

}  // namespace halfstep
