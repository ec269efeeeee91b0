#include "ops/pointwise.h"

#include "ops/broadcast.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep::ops {

std::vector<TensorType> Pointwise::infer(std::span<const TensorType> inputs) const {
  expect_count(name_, inputs, 1);
  expect_float(name_, "a tensor", inputs[0]);
  return {inputs[0]};
}

void Pointwise::lower(plan::Lowering& out) const {
  struct Push {
    std::uint32_t quads;
    std::uint32_t quads_per_row;
    std::uint32_t columns;
    float parameter;
  };
  const TensorType& type = out.output_type(0);
  const plan::Layout lay = plan::layout(type.shape);
  const Push push{index32(out, lay.quads()), index32(out, lay.quads_per_row()), index32(out, lay.columns), parameter_};
  const bool clear_pad = at_zero_ == AtZero::other && lay.columns != lay.pitch;
  dispatch_flat(out, name_ + "." + out.storage(type.dtype), lay.quads(), push,
                {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}}, {clear_pad});
}

std::vector<TensorType> PointwisePair::infer(std::span<const TensorType> inputs) const {
  expect_count(name_, inputs, 2);
  expect_same_float(name_, inputs[0], inputs[1]);
  return {{inputs[0].dtype, broadcast_shape(name_, inputs[0].shape, inputs[1].shape)}};
}

void PointwisePair::lower(plan::Lowering& out) const {
  const TensorType& type = out.output_type(0);
  const Broadcast plan = plan_broadcast(out, type.shape, out.input_type(0).shape, out.input_type(1).shape, factor_);
  dispatch_flat(
      out, shader_ + "." + out.storage(type.dtype), plan::layout(type.shape).quads(), plan.push,
      {{out.input(0), plan::Access::read}, {out.input(1), plan::Access::read}, {out.output(0), plan::Access::write}},
      plan.constants);
}

}  // namespace halfstep::ops
