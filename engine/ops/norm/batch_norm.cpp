#include "ops/norm/batch_norm.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "graph/ir.h"
#include "ops/apply.h"
#include "ops/elementwise/cast.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/norm/channel_norm.h"

namespace halfstep {
namespace {

using plan::Access;

ops::ChannelSets whole_batch(const Shape& shape) {
  return {.sets = 1, .rows = elements(shape) / shape.back(), .channels = shape.back()};
}

/// weight {c} and bias {c} in the type of x, running mean {c} and variance {c} in f32: inputs from `first` on.
void expect_parameters(std::string_view op, std::span<const TensorType> inputs, std::size_t first, DType dtype,
                       std::int64_t channels) {
  constexpr std::array roles{"weight", "bias", "running mean", "running variance"};
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const TensorType wanted{i < 2 ? dtype : DType::f32, {channels}};
    const TensorType& got = inputs[first + i];
    if (got != wanted) fail(op, fmt::format("expected {} {}, got {}", roles[i], to_string(wanted), to_string(got)));
  }
}

/// From x, dy, statistics and weight: dx, and the gradients of weight and bias.
class BatchNormGradient final : public graph::Operator {
 public:
  std::string name() const override { return "batch_norm_gradient"; }
  graph::Attributes attributes() const override { return {}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 4);
    return {inputs[0], inputs[3], inputs[3]};
  }

  void lower(plan::Lowering& out) const override {
    const ops::ChannelSets sets = whole_batch(out.input_type(0).shape);
    const plan::TensorId parts = ops::lower_gradient_sums(out, out.input(0), out.input(1), out.input(2), sets);
    const plan::TensorId sums = ops::lower_parameter_gradients(out, parts, out.output(1), out.output(2));
    const plan::TensorId means = out.over_ranks(sums, plan::OverRanks::means, sets.rows);
    ops::lower_norm_gradient(out, out.input(0), out.input(1), out.input(2), out.input(3), means,
                             ops::GradientMeans::sums, out.output(0), sets);
  }
};

/// From x, weight, bias and the running statistics: y, the batch's statistics, and the next running ones.
class BatchNorm final : public graph::Operator {
 public:
  explicit BatchNorm(BatchNormOptions options) : options_(options) {}

  std::string name() const override { return "batch_norm"; }
  bool reads_channel_moments(std::span<const TensorType> /*inputs*/) const override { return true; }
  graph::Attributes attributes() const override {
    return {{"momentum", options_.momentum}, {"epsilon", options_.epsilon}};
  }
  graph::Numerics numerics() const override { return graph::Numerics::norm; }
  bool keeps_states() const override { return true; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 5);
    const TensorType& x = inputs[0];
    ops::expect_float(name(), "x", x);
    if (x.shape.size() < 2) fail(name(), fmt::format("expected x {{n, ..., c}}, got {}", to_string(x)));
    const std::int64_t channels = x.shape.back();
    expect_parameters(name(), inputs, 1, x.dtype, channels);
    return {x, {DType::f32, {1, 2, channels}}, inputs[3], inputs[4]};
  }

  // with xhat = (x - mean) / std: dweight = sum(dy xhat), dbias = sum(dy),
  // dx = weight / std (dy - mean(dy) - xhat mean(dy xhat)), sums and means over all axes but the last; means over all
  // ranks, where they have statistics together: each rank's dy is the gradient of its own mean loss
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor inputs[] = {call.inputs[0], *call.cotangents[0], call.outputs[1], call.inputs[1]};
    const std::vector<Tensor> gradients = graph::apply(std::make_shared<BatchNormGradient>(), inputs);
    return {gradients[0], gradients[1], gradients[2], std::nullopt, std::nullopt};
  }

  std::optional<Tensor> inference(std::span<const Tensor> inputs) const override {
    return ops::batch_norm_inference(inputs[0], inputs[1], inputs[2], {inputs[3], inputs[4]}, options_.epsilon);
  }

  // Where the running statistics are used, inference() has replaced this operator: one element is enough there.
  void lower(plan::Lowering& out) const override {
    const ops::ChannelSets sets = whole_batch(out.input_type(0).shape);
    if (sets.rows == 1) {
      fail(name(),
           fmt::format("expected more than one element a channel in training, got {}", to_string(out.input_type(0))),
           "a variance takes at least two: make the batch larger");
    }
    ops::lower_batch_statistics(out, out.input(0),
                                {.running_mean = out.input(3),
                                 .running_variance = out.input(4),
                                 .used = out.output(1),
                                 .next_mean = out.output(2),
                                 .next_variance = out.output(3),
                                 .epsilon = options_.epsilon,
                                 .momentum = options_.momentum},
                                sets);
    ops::lower_channel_norm(out, out.input(0), out.output(1), out.input(1), out.input(2), out.output(0), sets);
  }

 private:
  BatchNormOptions options_;
};

/// From weight, bias and the running statistics: the factor and offset that replace batch norm in inference.
class BatchNormAffine final : public graph::Operator {
 public:
  explicit BatchNormAffine(float epsilon) : epsilon_(epsilon) {}

  std::string name() const override { return "batch_norm_affine"; }
  graph::Attributes attributes() const override { return {{"epsilon", epsilon_}}; }
  graph::Numerics numerics() const override { return graph::Numerics::norm; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 4);
    expect_parameters(name(), inputs, 0, inputs[0].dtype, elements(inputs[0].shape));
    return {inputs[0], inputs[0]};
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t quads;
      float epsilon;
    };
    const std::int64_t quads = plan::layout(out.type(out.output(0)).shape).quads();
    std::vector<plan::Operand> operands;
    for (std::size_t i = 0; i < 4; ++i) operands.push_back({out.input(i), Access::read});
    for (std::size_t i = 0; i < 2; ++i) operands.push_back({out.output(i), Access::write});
    ops::dispatch_flat(out, ops::variant(out, "batch_norm_affine", out.type(out.output(0)).dtype), quads,
                       Push{ops::index32(out, quads), epsilon_}, std::move(operands));
  }

 private:
  float epsilon_;
};

void check(const BatchNormOptions& options) {
  ops::expect_epsilon("batch_norm", options.epsilon);
  if (!(options.momentum >= 0 && options.momentum <= 1)) {
    fail("batch_norm", fmt::format("expected a momentum from 0 to 1, got {}", options.momentum));
  }
}

}  // namespace

ops::BatchNormResult ops::batch_norm_training(Tensor x, Tensor weight, Tensor bias, RunningStatistics running,
                                              BatchNormOptions options) {
  check(options);
  const Tensor inputs[] = {x, weight, bias, running.mean, running.variance};
  const std::vector<Tensor> outputs = graph::apply(std::make_shared<BatchNorm>(options), inputs);
  return {outputs[0], outputs[1], outputs[2], outputs[3]};
}

Tensor ops::batch_norm_inference(Tensor x, Tensor weight, Tensor bias, RunningStatistics running, float epsilon) {
  // In f32: rounded to 16 bits, the two would not cancel where a channel's mean is large beside its deviation.
  const Tensor inputs[] = {in_type(weight, DType::f32), in_type(bias, DType::f32), running.mean, running.variance};
  const std::vector<Tensor> affine = graph::apply(std::make_shared<BatchNormAffine>(epsilon), inputs);
  graph::Ir& ir = graph::ir_of(x);
  const graph::Value& value = ir.values[x.id()];
  if (value.origin == graph::Origin::node) {
    const graph::Node producer = ir.nodes[value.producer];  // a copy: this appends nodes
    std::vector<Tensor> operands;
    for (const graph::ValueId input : producer.inputs) operands.push_back(ir.tensor(input));
    if (const auto folded = producer.op->with_affine(operands, affine[0], affine[1])) return *folded;
  }
  return in_type(add(mul(in_type(x, DType::f32), affine[0]), affine[1]), x.dtype());
}

Tensor batch_norm(Tensor x, Tensor weight, Tensor bias, RunningStatistics running, BatchNormOptions options) {
  const ops::BatchNormResult result = ops::batch_norm_training(x, weight, bias, running, options);
  update(running.mean, result.next_mean);
  update(running.variance, result.next_variance);
  return result.y;
}

}  // namespace halfstep
