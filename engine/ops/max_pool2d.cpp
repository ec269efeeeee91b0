#include <halfstep/ops.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/pool2d.h"

namespace halfstep {
namespace {

/// From images x, their pooled y and dy: dx.
class MaxPool2dGradient final : public graph::Operator {
 public:
  explicit MaxPool2dGradient(ops::Pool2d pool) : pool_(pool) {}

  std::string name() const override { return "max_pool2d_gradient"; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 3);
    return {inputs[0]};
  }

  void lower(plan::Lowering& out) const override {
    const TensorType& type = out.input_type(0);
    const ops::Pool2dPush push = ops::pool_push(out, pool_, type.shape, out.input_type(1).shape, type.shape);
    ops::dispatch_flat(out, "max_pool2d_gradient." + out.storage(type.dtype), plan::layout(type.shape).quads(), push,
                       {{out.input(0), plan::Access::read},
                        {out.input(1), plan::Access::read},
                        {out.input(2), plan::Access::read},
                        {out.output(0), plan::Access::write}});
  }

 private:
  ops::Pool2d pool_;
};

class MaxPool2d final : public graph::Operator {
 public:
  explicit MaxPool2d(ops::Pool2d pool) : pool_(pool) {}

  std::string name() const override { return "max_pool2d"; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    return {{inputs[0].dtype, ops::pooled_shape(name(), pool_, inputs[0])}};
  }

  // dx[n, y, x, c] = sum of dy over the windows of which it is the first largest element
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {ops::apply<MaxPool2dGradient>({call.inputs[0], call.outputs[0], *call.cotangents[0]}, pool_)};
  }

  void lower(plan::Lowering& out) const override {
    const TensorType& type = out.output_type(0);
    const ops::Pool2dPush push = ops::pool_push(out, pool_, out.input_type(0).shape, type.shape, type.shape);
    ops::dispatch_flat(out, "max_pool2d." + out.storage(type.dtype), plan::layout(type.shape).quads(), push,
                       {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}});
  }

 private:
  ops::Pool2d pool_;
};

}  // namespace

Tensor max_pool2d(Tensor images, Pool2dOptions options) {
  return ops::apply<MaxPool2d>({images}, ops::checked_pool("max_pool2d", options));
}

}  // namespace halfstep
