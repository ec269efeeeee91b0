#pragma once

#include <halfstep/ops.h>

#include <array>
#include <string_view>

#include "graph/operator.h"
#include "ops/gemm/gemm.h"
#include "plan/lowering.h"

namespace halfstep::ops {

/// The shapes of one convolution.
struct Convolution {
  Shape images;  ///< {n, h, w, in}
  Shape weight;  ///< {kh, kw, in / groups, out}
  Conv2dOptions options;

  /// {n, oh, ow, out}. Throws Error "[op] expected ..." if the shapes do not match.
  Shape output(std::string_view op) const;
  /// Channels of one group.
  std::int64_t in_channels() const { return weight[2]; }
  std::int64_t out_channels() const { return weight[3] / options.groups; }
  std::int64_t taps() const { return weight[0] * weight[1]; }
  /// Whether every group's channels start on a quad, so that the groups form a batch of matrix products.
  bool groups_aligned() const;
  /// Whether it is a depthwise convolution: every channel is convolved separately and gives one channel.
  bool depthwise() const { return in_channels() == 1 && out_channels() == 1 && options.groups > 1; }
  /// Whether it is a 1x1 convolution: a product of the pixels with one matrix.
  bool pointwise() const;
};

/// The options as an operator's attributes, followed by `more`.
graph::Attributes attributes(const Conv2dOptions& options, graph::Attributes more = {});

/// Throws Error "[op] expected ..." if the extents {height, width} of images or kernel, or an option, exceed the range
/// in which the shaders' arithmetic is exact.
void expect_convolution(std::string_view op, const Pair& images, const Pair& kernel, const Conv2dOptions& options);

/// Gradient for the images {n, h, w, in} from the output's gradient, `cotangent` {n, oh, ow, out}.
Tensor conv2d_data_gradient(Tensor cotangent, Tensor weight, Shape images, Conv2dOptions options,
                            std::string_view op = "conv2d_data_gradient");
/// Gradient for the weight {kh, kw, in / groups, out}.
Tensor conv2d_weight_gradient(Tensor images, Tensor cotangent, Shape weight, Conv2dOptions options);
/// Gradients for the weight and for a bias {out}.
std::array<Tensor, 2> conv2d_parameter_gradients(Tensor images, Tensor cotangent, Shape weight, Conv2dOptions options);

/// Inputs: images, weight and optionally bias.
void lower_conv2d(plan::Lowering& out, const Convolution& convolution);
/// Inputs: cotangent, weight.
void lower_conv2d_data_gradient(plan::Lowering& out, const Convolution& convolution);
/// Inputs: images, cotangent; outputs: the gradients of weight and optionally bias.
void lower_conv2d_weight_gradient(plan::Lowering& out, const Convolution& convolution);

/// Sizes for the kernels that are not a matrix product, {height, width} each, at the end of their push constants.
struct WindowPush {
  std::uint32_t image[2], positions[2], kernel[2], stride[2], padding[2], dilation[2];
};
WindowPush window_push(const plan::Lowering& out, const Convolution& convolution);

/// The same for depthwise convolutions. `part` is "forward", "data_gradient" or "weight_gradient".
void lower_conv2d_depthwise(plan::Lowering& out, const Convolution& convolution, std::string_view part);
/// The same for groups that do not start on quads, and where a depthwise convolution has too many taps for the other
/// kernel: one invocation for each quad of the result. `part` is the PART axis
/// of conv2d_grouped.comp: "forward", "data_gradient" or "weight_gradient".
void lower_conv2d_grouped(plan::Lowering& out, const Convolution& convolution, std::string_view part);

}  // namespace halfstep::ops
