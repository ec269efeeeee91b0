#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/norm/channel_norm.h"

namespace halfstep {
namespace {

using plan::Access;

/// Every image is one set.
ops::ChannelSets images_of(const Shape& shape) {
  return {.sets = shape.front(), .rows = elements(shape) / shape.front() / shape.back(), .channels = shape.back()};
}

/// The push constants of group_norm_statistics.comp and group_norm_means.comp.
struct GroupPush {
  std::uint32_t invocations;
  std::uint32_t groups;
  std::uint32_t channels;
  float rows;
  float epsilon;
};

GroupPush push_of(const plan::Lowering& out, const ops::ChannelSets& sets, std::int64_t groups, float epsilon) {
  return {ops::index32(out, sets.sets * groups), ops::index32(out, groups), ops::index32(out, sets.channels),
          static_cast<float>(sets.rows), epsilon};
}

/// Loop rounds of an invocation that reads the channels of a group, and their padding, `passes` times.
std::int64_t rounds_of(const GroupPush& push, std::int64_t passes) {
  return passes * (std::int64_t{push.channels / push.groups} + 1) + 3;
}

/// From x, dy, statistics and weight: dx, and the gradients of weight and bias.
class GroupNormGradient final : public graph::Operator {
 public:
  explicit GroupNormGradient(std::int64_t groups) : groups_(groups) {}

  std::string name() const override { return "group_norm_gradient"; }
  graph::Attributes attributes() const override { return {{"groups", groups_}}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 4);
    return {inputs[0], inputs[3], inputs[3]};
  }

  void lower(plan::Lowering& out) const override {
    const ops::ChannelSets sets = images_of(out.input_type(0).shape);
    const plan::TensorId parts = ops::lower_gradient_sums(out, out.input(0), out.input(1), out.input(2), sets);
    const plan::TensorId sums = ops::lower_set_sums(out, parts, sets);
    ops::lower_parameter_gradients(out, sums, out.output(1), out.output(2));
    const plan::TensorId means = out.workspace("means", {DType::f32, sets.shape(2)});
    const GroupPush push = push_of(out, sets, groups_, 0);
    ops::dispatch_flat(out, ops::variant(out, "group_norm_means", out.input_type(3).dtype), push.invocations, push,
                       {{sums, Access::read}, {out.input(3), Access::read}, {means, Access::write}}, {},
                       {.rounds = rounds_of(push, 2)});
    ops::lower_norm_gradient(out, out.input(0), out.input(1), out.input(2), out.input(3), means,
                             ops::GradientMeans::means, out.output(0), sets);
  }

 private:
  std::int64_t groups_;
};

/// From x, weight and bias: y, and the statistics {n, 2, c} of every image's channels.
class GroupNorm final : public graph::Operator {
 public:
  GroupNorm(std::int64_t groups, float epsilon) : groups_(groups), epsilon_(epsilon) {}

  std::string name() const override { return "group_norm"; }
  bool reads_channel_moments(std::span<const TensorType> inputs) const override { return inputs[0].shape.front() == 1; }
  graph::Attributes attributes() const override { return {{"groups", groups_}, {"epsilon", epsilon_}}; }
  graph::Numerics numerics() const override { return graph::Numerics::norm; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 3);
    const TensorType& x = inputs[0];
    ops::expect_float(name(), "x", x);
    if (x.shape.size() < 2) fail(name(), fmt::format("expected x {{n, ..., c}}, got {}", to_string(x)));
    const TensorType channels{x.dtype, {x.shape.back()}};
    if (inputs[1] != channels || inputs[2] != channels) {
      fail(name(), fmt::format("expected weight and bias {}, got {} and {}", to_string(channels), to_string(inputs[1]),
                               to_string(inputs[2])));
    }
    if (groups_ < 1 || x.shape.back() % groups_ != 0) {
      fail(name(), fmt::format("expected groups that divide {} channels, got {}", x.shape.back(), groups_));
    }
    return {x, {DType::f32, {x.shape.front(), 2, x.shape.back()}}};
  }

  // with xhat = (x - mean) / std: dweight = sum(dy xhat), dbias = sum(dy), over images and pixels;
  // dx = (weight dy - mean(weight dy) - xhat mean(weight dy xhat)) / std, means over a group of an image
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor inputs[] = {call.inputs[0], *call.cotangents[0], call.outputs[1], call.inputs[1]};
    const std::vector<Tensor> gradients = graph::apply(std::make_shared<GroupNormGradient>(groups_), inputs);
    return {gradients[0], gradients[1], gradients[2]};
  }

  void lower(plan::Lowering& out) const override {
    const ops::ChannelSets sets = images_of(out.input_type(0).shape);
    const plan::TensorId moments = ops::lower_moments(out, out.input(0), sets);
    const GroupPush push = push_of(out, sets, groups_, epsilon_);
    ops::dispatch_flat(out, "group_norm_statistics", push.invocations, push,
                       {{moments, Access::read}, {out.output(1), Access::write}}, {}, {.rounds = rounds_of(push, 3)});
    ops::lower_channel_norm(out, out.input(0), out.output(1), out.input(1), out.input(2), out.output(0), sets);
  }

 private:
  std::int64_t groups_;
  float epsilon_;
};

}  // namespace

Tensor group_norm(Tensor x, std::int64_t groups, Tensor weight, Tensor bias, float epsilon) {
  ops::expect_epsilon("group_norm", epsilon);
  const Tensor inputs[] = {x, weight, bias};
  return graph::apply(std::make_shared<GroupNorm>(groups, epsilon), inputs).front();
}

Tensor instance_norm(Tensor x, Tensor weight, Tensor bias, float epsilon) {
  return group_norm(x, x.dim(-1), weight, bias, epsilon);
}

}  // namespace halfstep
