#include "ops/conv/conv2d.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/shape/broadcast.h"
#include "ops/with_affine.h"

namespace halfstep {
namespace {

/// The largest extent or option for which the shaders' arithmetic is exact.
constexpr std::int64_t most = 1 << 20;

void expect_option(std::string_view op, std::string_view role, const Pair& pair, std::int64_t least) {
  for (const std::int64_t value : pair) {
    if (value >= least && value <= most) continue;
    fail(op, fmt::format("expected {} from {} to {}, got {{{}, {}}}", role, least, most, pair[0], pair[1]));
  }
}

void expect_images(std::string_view op, std::string_view role, const TensorType& type) {
  ops::expect_rank(op, role, type, 4, "{n, h, w, channels}");
}

/// The gradient for the images; also implements transposed convolution.
class DataGradient final : public graph::Operator {
 public:
  DataGradient(std::string_view name, Shape images, Conv2dOptions options)
      : name_(name), images_(std::move(images)), options_(options) {}

  std::string name() const override { return name_; }
  graph::Attributes attributes() const override { return ops::attributes(options_, {{"images", images_}}); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_same_float(name(), inputs[0], inputs[1]);
    const Shape output = convolution(inputs[1].shape).output(name());
    ops::expect_same_shape(name(), {inputs[0].dtype, output}, inputs[0]);
    return {{inputs[0].dtype, images_}};
  }

  // It is linear in both: <u, data_gradient(dy, w)> = <conv2d(u, w), dy>.
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor u = *call.cotangents[0];
    graph::Gradients gradients(2);
    if (call.needed[0]) gradients[0] = conv2d(u, call.inputs[1], options_);
    if (call.needed[1]) {
      gradients[1] = ops::conv2d_weight_gradient(u, call.inputs[0], call.inputs[1].shape(), options_);
    }
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    ops::lower_conv2d_data_gradient(out, convolution(out.input_type(1).shape));
  }

 private:
  ops::Convolution convolution(const Shape& weight) const { return {images_, weight, options_}; }

  std::string name_;  ///< what the operator is to who made it
  Shape images_;
  Conv2dOptions options_;
};

/// The gradients for the weight and optionally the bias.
class WeightGradient final : public graph::Operator {
 public:
  WeightGradient(Shape weight, Conv2dOptions options, bool with_bias)
      : weight_(std::move(weight)), options_(options), with_bias_(with_bias) {}

  std::string name() const override { return "conv2d_weight_gradient"; }
  graph::Attributes attributes() const override {
    return ops::attributes(options_, {{"weight", weight_}, {"bias", with_bias_}});
  }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_same_float(name(), inputs[0], inputs[1]);
    const Shape output = convolution(inputs[0].shape).output(name());
    ops::expect_same_shape(name(), {inputs[1].dtype, output}, inputs[1]);
    std::vector<TensorType> gradients{{inputs[0].dtype, weight_}};
    if (with_bias_) gradients.push_back({inputs[0].dtype, {weight_.back()}});
    return gradients;
  }

  // It is linear in both: <u, weight_gradient(x, dy)> = <conv2d(x, u), dy>, and <v, bias_gradient(dy)> = <v, dy>.
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor x = call.inputs[0];
    const Tensor dy = call.inputs[1];
    const std::optional<Tensor>& u = call.cotangents[0];
    std::optional<Tensor> v;
    if (with_bias_) v = call.cotangents[1];
    graph::Gradients gradients(2);
    if (call.needed[0] && u) gradients[0] = ops::conv2d_data_gradient(dy, *u, x.shape(), options_);
    if (call.needed[1]) gradients[1] = u ? conv2d(x, *u, options_, v) : ops::expand(*v, dy.type());
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    ops::lower_conv2d_weight_gradient(out, convolution(out.input_type(0).shape));
  }

 private:
  ops::Convolution convolution(const Shape& images) const { return {images, weight_, options_}; }

  Shape weight_;
  Conv2dOptions options_;
  bool with_bias_;
};

/// The convolution, with a bias if there are three inputs.
class Conv2d final : public graph::Operator {
 public:
  explicit Conv2d(Conv2dOptions options) : options_(options) {}

  std::string name() const override { return "conv2d"; }
  graph::Attributes attributes() const override { return ops::attributes(options_); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (inputs.size() != 3) ops::expect_count(name(), inputs, 2);
    ops::expect_same_float(name(), inputs[0], inputs[1]);
    expect_images(name(), "images", inputs[0]);
    const Shape output = ops::Convolution{inputs[0].shape, inputs[1].shape, options_}.output(name());
    if (inputs.size() == 3) {
      ops::expect_same_float(name(), inputs[0], inputs[2]);
      ops::expect_same_shape(name(), {inputs[2].dtype, {output.back()}}, inputs[2]);
    }
    return {{inputs[0].dtype, output}};
  }

  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor images = call.inputs[0];
    const Tensor weight = call.inputs[1];
    const Tensor dy = *call.cotangents[0];
    graph::Gradients gradients(call.inputs.size());
    if (call.needed[0]) gradients[0] = ops::conv2d_data_gradient(dy, weight, images.shape(), options_);
    const bool bias_needed = gradients.size() == 3 && call.needed[2];
    if (call.needed[1] && bias_needed) {
      const auto [dw, db] = ops::conv2d_parameter_gradients(images, dy, weight.shape(), options_);
      gradients[1] = dw;
      gradients[2] = db;
    } else if (call.needed[1]) {
      gradients[1] = ops::conv2d_weight_gradient(images, dy, weight.shape(), options_);
    } else if (bias_needed) {
      gradients[2] = sum(dy, {0, 1, 2});
    }
    return gradients;
  }

  std::optional<Tensor> with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset) const override {
    const auto folded = ops::with_affine(inputs, factor, offset);
    if (!folded) return {};
    return conv2d(inputs[0], folded->weight, options_, folded->bias);
  }

  void lower(plan::Lowering& out) const override {
    ops::lower_conv2d(out, {out.input_type(0).shape, out.input_type(1).shape, options_});
  }

 private:
  Conv2dOptions options_;
};

}  // namespace

graph::Attributes ops::attributes(const Conv2dOptions& options, graph::Attributes more) {
  graph::Attributes all{{"stride", graph::list_of(options.stride)},
                        {"padding", graph::list_of(options.padding)},
                        {"dilation", graph::list_of(options.dilation)},
                        {"groups", options.groups}};
  std::ranges::move(more, std::back_inserter(all));
  return all;
}

void ops::expect_convolution(std::string_view op, const Pair& images, const Pair& kernel,
                             const Conv2dOptions& options) {
  expect_option(op, "image extents", images, 1);
  expect_option(op, "kernel extents", kernel, 1);
  expect_option(op, "stride", options.stride, 1);
  expect_option(op, "padding", options.padding, 0);
  expect_option(op, "dilation", options.dilation, 1);
}

Shape ops::Convolution::output(std::string_view op) const {
  expect_images(op, "images", {DType::f32, images});
  if (weight.size() != 4) {
    fail(op, fmt::format("expected weight {{kh, kw, in / groups, out}}, got {}", to_string(weight)));
  }
  expect_convolution(op, {images[1], images[2]}, {weight[0], weight[1]}, options);
  if (options.groups < 1 || images[3] % options.groups != 0 || weight[3] % options.groups != 0) {
    fail(op,
         fmt::format("expected groups that divide {} and {} channels, got {}", images[3], weight[3], options.groups));
  }
  if (images[3] / options.groups != weight[2]) {
    fail(op, fmt::format("expected {} channels for weight {} in {} groups, got images {}",
                         elements({weight[2], options.groups}), to_string(weight), options.groups, to_string(images)));
  }
  Shape result{images[0], 0, 0, weight[3]};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t padded = images[i + 1] + 2 * options.padding[i];
    const std::int64_t reach = options.dilation[i] * (weight[i] - 1) + 1;
    if (reach > padded) {
      fail(op,
           fmt::format("expected images that the kernel fits in, got a reach of {} over {} padded pixels", reach,
                       padded),
           "raise the padding or use a smaller kernel");
    }
    result[i + 1] = (padded - reach) / options.stride[i] + 1;
  }
  return result;
}

Tensor ops::conv2d_data_gradient(Tensor cotangent, Tensor weight, Shape images, Conv2dOptions options,
                                 std::string_view op) {
  return apply<DataGradient>({cotangent, weight}, op, std::move(images), options);
}

Tensor ops::conv2d_weight_gradient(Tensor images, Tensor cotangent, Shape weight, Conv2dOptions options) {
  return apply<WeightGradient>({images, cotangent}, std::move(weight), options, false);
}

std::array<Tensor, 2> ops::conv2d_parameter_gradients(Tensor images, Tensor cotangent, Shape weight,
                                                      Conv2dOptions options) {
  const Tensor inputs[] = {images, cotangent};
  const std::vector<Tensor> gradients =
      graph::apply(std::make_shared<WeightGradient>(std::move(weight), options, true), inputs);
  return {gradients[0], gradients[1]};
}

Tensor conv2d(Tensor images, Tensor weight, Conv2dOptions options, std::optional<Tensor> bias) {
  if (bias) return ops::apply<Conv2d>({images, weight, *bias}, options);
  return ops::apply<Conv2d>({images, weight}, options);
}

}  // namespace halfstep
