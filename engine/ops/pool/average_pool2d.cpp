#include <halfstep/ops.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/pool/pool2d.h"

namespace halfstep {
namespace {

/// From dy: dx, with the shape of the images.
class AveragePool2dGradient final : public graph::Operator {
 public:
  AveragePool2dGradient(ops::Pool2d pool, Shape images) : pool_(pool), images_(std::move(images)) {}

  std::string name() const override { return "average_pool2d_gradient"; }
  graph::Attributes attributes() const override { return ops::attributes(pool_, {{"images", images_}}); }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    return {{inputs[0].dtype, images_}};
  }

  void lower(plan::Lowering& out) const override {
    const Shape pooled = out.input_type(0).shape;
    ops::dispatch_pool(out, name(), pool_, images_, pooled, images_,
                       ops::loop_rounds(ops::most_windows(pool_, images_, pooled)));
  }

 private:
  ops::Pool2d pool_;
  Shape images_;
};

class AveragePool2d final : public ops::Pooling {
 public:
  using Pooling::Pooling;

  std::string name() const override { return "average_pool2d"; }

  // dx[n, y, x, c] = sum of dy over the windows that cover it, each divided by the window's divisor
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {ops::apply<AveragePool2dGradient>({*call.cotangents[0]}, pool_, call.inputs[0].shape())};
  }
};

}  // namespace

Tensor average_pool2d(Tensor images, Pool2dOptions options) {
  return ops::apply<AveragePool2d>({images}, ops::checked_pool("average_pool2d", options));
}

Tensor adaptive_average_pool2d(Tensor images, Pair size) {
  return ops::apply<AveragePool2d>({images}, ops::adaptive_pool("adaptive_average_pool2d", images, size));
}

Tensor global_average_pool(Tensor images) {
  ops::expect_rank("global_average_pool", "images", images.type(), 4, "{n, h, w, c}");
  return mean(images, {1, 2});
}

}  // namespace halfstep
