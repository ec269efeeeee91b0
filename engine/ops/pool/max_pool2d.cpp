#include <halfstep/ops.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/pool/pool2d.h"

namespace halfstep {
namespace {

/// From images x, their pooled y and dy: dx.
class MaxPool2dGradient final : public graph::Operator {
 public:
  explicit MaxPool2dGradient(ops::Pool2d pool) : pool_(pool) {}

  std::string name() const override { return "max_pool2d_gradient"; }
  graph::Attributes attributes() const override { return ops::attributes(pool_); }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 3);
    return {inputs[0]};
  }

  void lower(plan::Lowering& out) const override {
    const Shape images = out.input_type(0).shape;
    const Shape pooled = out.input_type(1).shape;
    const bool apart = !pool_.adaptive && pool_.stride[0] >= pool_.kernel[0] && pool_.stride[1] >= pool_.kernel[1];
    const std::string shader = apart ? "max_pool2d_gradient_apart" : "max_pool2d_gradient";
    // Overlapping windows are each searched once more, for an equal element that comes first.
    const Pair window = ops::largest_window(pool_, images, pooled);
    const std::int64_t window_rounds = window[0] * window[1] + 1;
    const std::int64_t rounds = apart ? ops::loop_rounds(pool_.stride)
                                      : ops::loop_rounds(ops::most_windows(pool_, images, pooled), window_rounds);
    std::optional<ops::PoolLanes> lanes;
    const bool fill = pool_.padding == Pair{0, 0} && images[1] == pooled[1] * pool_.stride[0] &&
                      images[2] == pooled[2] * pool_.stride[1];
    if (apart && fill) lanes = {.shader = shader + "_lanes.f32", .pixels = pool_.stride, .addressed = 3};
    ops::dispatch_pool(out, shader, pool_, images, pooled, apart ? cells(images) : images, rounds, lanes);
  }

 private:
  /// The images divided at each window's first pixel.
  Shape cells(Shape images) const {
    for (std::size_t i = 0; i < 2; ++i) {
      images[i + 1] = (images[i + 1] + pool_.padding[i] + pool_.stride[i] - 1) / pool_.stride[i];
    }
    return images;
  }

  ops::Pool2d pool_;
};

class MaxPool2d final : public ops::Pooling {
 public:
  using Pooling::Pooling;

  std::string name() const override { return "max_pool2d"; }

  // dx[n, y, x, c] = sum of dy over the windows of which it is the first largest element
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {ops::apply<MaxPool2dGradient>({call.inputs[0], call.outputs[0], *call.cotangents[0]}, pool_)};
  }

 protected:
  std::optional<ops::PoolLanes> lanes() const override {
    return ops::PoolLanes{.shader = "max_pool2d_lanes.f32", .pixels = pool_.kernel, .addressed = 1};
  }
};

}  // namespace

Tensor max_pool2d(Tensor images, Pool2dOptions options) {
  return ops::apply<MaxPool2d>({images}, ops::checked_pool("max_pool2d", options));
}

Tensor adaptive_max_pool2d(Tensor images, Pair size) {
  return ops::apply<MaxPool2d>({images}, ops::adaptive_pool("adaptive_max_pool2d", images, size));
}

}  // namespace halfstep
