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

  /// {n, oh, ow, out}. Throws Error "[op] expected ..." where the shapes do not fit together.
  Shape output(std::string_view op) const;
  /// Channels of one group.
  std::int64_t in_channels() const { return weight[2]; }
  std::int64_t out_channels() const { return weight[3] / options.groups; }
  std::int64_t taps() const { return weight[0] * weight[1]; }
  /// Whether every group's channels start on a quad, so that groups are a batch of products.
  bool groups_aligned() const;
  /// Whether every channel is convolved by itself, with one result.
  bool depthwise() const { return in_channels() == 1 && out_channels() == 1 && options.groups > 1; }
  /// Whether it is a product of the pixels with one matrix.
  bool pointwise() const;
};

/// The options as an operator's attributes, followed by `more`.
graph::Attributes attributes(const Conv2dOptions& options, graph::Attributes more = {});

/// Throws Error "[op] expected ..." where extents {height, width} of images or kernel, or an option, are out of the
/// range that shaders are exact in.
void expect_convolution(std::string_view op, const Pair& images, const Pair& kernel, const Conv2dOptions& options);

/// Gradient for the images {n, h, w, in} from the output's, `cotangent` {n, oh, ow, out}.
Tensor conv2d_data_gradient(Tensor cotangent, Tensor weight, Shape images, Conv2dOptions options);
/// Gradient for the weight {kh, kw, in / groups, out}.
Tensor conv2d_weight_gradient(Tensor images, Tensor cotangent, Shape weight, Conv2dOptions options);
/// Gradients for the weight and for a bias {out}.
std::array<Tensor, 2> conv2d_parameter_gradients(Tensor images, Tensor cotangent, Shape weight, Conv2dOptions options);

/// Inputs: images, weight and, where there are three, bias.
void lower_conv2d(plan::Lowering& out, const Convolution& convolution);
/// Inputs: cotangent, weight.
void lower_conv2d_data_gradient(plan::Lowering& out, const Convolution& convolution);
/// Inputs: images, cotangent; outputs: the weight's and, where there are two, the bias's.
void lower_conv2d_weight_gradient(plan::Lowering& out, const Convolution& convolution);

/// Sizes that kernels which are no matrix product are given, {height, width} each, at the end of their push constants.
struct WindowPush {
  std::uint32_t image[2], positions[2], kernel[2], stride[2], padding[2], dilation[2];
};
WindowPush window_push(const plan::Lowering& out, const Convolution& convolution);

/// The same where channels are convolved by themselves. `part` is "forward", "data_gradient" or "weight_gradient".
void lower_conv2d_depthwise(plan::Lowering& out, const Convolution& convolution, std::string_view part);
/// The same for groups that do not start on quads: one invocation for each quad of the result. `part` is the PART axis
/// of conv2d_grouped.comp: "forward", "data_gradient" or "weight_gradient".
void lower_conv2d_grouped(plan::Lowering& out, const Convolution& convolution, std::string_view part);

}  // namespace halfstep::ops
