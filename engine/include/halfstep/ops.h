#pragma once

#include <halfstep/tensor.h>

#include <array>
#include <optional>

/// The operators. Each takes and returns symbolic tensors; shapes are checked here and now, and an Error names the
/// operator. Images are {batch, height, width, channels}; images' kernels are {height, width, in / groups, out}.
namespace halfstep {

/// {height, width} of a window's steps, borders and the like.
using Pair = std::array<std::int64_t, 2>;

struct MatmulOptions {
  bool transpose_a = false;  ///< a is {..., k, m}
  bool transpose_b = false;  ///< b is {..., n, k}
};
/// a {..., m, k} times b {..., k, n}: {..., m, n}. The batch axes are equal, or one side has none and serves them all.
HALFSTEP_API Tensor matmul(Tensor a, Tensor b, MatmulOptions options = {});

/// x {..., in} times weight {in, out}, plus bias {out} where there is one: {..., out}.
HALFSTEP_API Tensor linear(Tensor x, Tensor weight, std::optional<Tensor> bias = {});

struct Conv2dOptions {
  Pair stride{1, 1};
  Pair padding{0, 0};  ///< zeros on both sides
  Pair dilation{1, 1};
  std::int64_t groups = 1;
};
/// Cross-correlation of images {n, h, w, in} with weight {kh, kw, in / groups, out}, plus bias {out} where there is
/// one: {n, oh, ow, out} with oh = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1.
HALFSTEP_API Tensor conv2d(Tensor images, Tensor weight, Conv2dOptions options = {}, std::optional<Tensor> bias = {});

/// The transpose of conv2d with these options: images {n, h, w, in} and weight {kh, kw, out / groups, in} give
/// {n, oh, ow, out} with oh = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1.
HALFSTEP_API Tensor conv2d_transpose(Tensor images, Tensor weight, Conv2dOptions options = {},
                                     Pair output_padding = {0, 0});

/// x {..., c} plus b {c}.
HALFSTEP_API Tensor bias(Tensor x, Tensor b);

/// max(x, 0); the gradient at 0 is 0.
HALFSTEP_API Tensor relu(Tensor x);
/// min(max(x, 0), 6); the gradient at 0 and 6 is 0.
HALFSTEP_API Tensor relu6(Tensor x);
/// x where x > 0, else slope x; `slope` is 0 or more and the gradient at 0.
HALFSTEP_API Tensor leaky_relu(Tensor x, float slope = 0.01F);
/// 1 / (1 + exp(-x)).
HALFSTEP_API Tensor sigmoid(Tensor x);
HALFSTEP_API Tensor tanh(Tensor x);
/// x sigmoid(x), also called swish: Elfwing et al. 2018.
HALFSTEP_API Tensor silu(Tensor x);
/// x relu6(x + 3) / 6: Howard et al. 2019.
HALFSTEP_API Tensor hardswish(Tensor x);

/// The mean and variance that batch norm keeps for inference: f32 {c} each, made by Scope::state.
struct RunningStatistics {
  Tensor mean;
  Tensor variance;
};
struct BatchNormOptions {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  ///< the share of a batch in the running statistics
};
/// (x - mean) / sqrt(variance + epsilon) * weight + bias for x {n, ..., c}, weight {c} and bias {c}: Ioffe and Szegedy
/// 2015. In training with the mean and variance of the batch, in f32, and every update moves the running statistics
/// towards them (towards the unbiased variance); in evaluation with the running ones, folded into the weights of a
/// convolution that x comes from.
HALFSTEP_API Tensor batch_norm(Tensor x, Tensor weight, Tensor bias, RunningStatistics running,
                               BatchNormOptions options = {});

/// Normalises each image of x {n, ..., c} in `groups` groups of neighbouring channels, with the mean and variance of
/// all of a group's elements (x {n, c} has one for each channel); then times weight {c} plus bias {c}: Wu and He 2018.
HALFSTEP_API Tensor group_norm(Tensor x, std::int64_t groups, Tensor weight, Tensor bias, float epsilon = 1e-5F);
/// The same with every channel a group of its own: Ulyanov et al. 2016.
HALFSTEP_API Tensor instance_norm(Tensor x, Tensor weight, Tensor bias, float epsilon = 1e-5F);

struct Pool2dOptions {
  Pair kernel{2, 2};
  std::optional<Pair> stride{};  ///< the kernel's extents where not given
  Pair padding{0, 0};            ///< at most half the kernel
  bool count_padding = true;     ///< average pooling: whether the border counts in the divisor
};
/// The largest element of each window of {n, h, w, c}; among equals the first takes the gradient.
HALFSTEP_API Tensor max_pool2d(Tensor images, Pool2dOptions options = {});
/// The mean of each window of {n, h, w, c}.
HALFSTEP_API Tensor average_pool2d(Tensor images, Pool2dOptions options = {});

/// The mean, or the largest element, of windows that divide images {n, h, w, c} into `size`: window i of an extent h
/// begins at floor(i h / size) and ends before ceil((i + 1) h / size). A size above h gives overlapping windows.
HALFSTEP_API Tensor adaptive_average_pool2d(Tensor images, Pair size);
HALFSTEP_API Tensor adaptive_max_pool2d(Tensor images, Pair size);
/// The mean of each channel of each image {n, h, w, c}: {n, c}.
HALFSTEP_API Tensor global_average_pool(Tensor images);

/// The same elements, in the same order, in another shape; one extent may be -1, to be worked out.
HALFSTEP_API Tensor reshape(Tensor x, Shape shape);
/// {n, ...} as {n, product of the rest}.
HALFSTEP_API Tensor flatten(Tensor x);

/// The part of x from `begin` up to but not including `end`, every `step`-th element where steps are given; one number
/// for each axis, of which there are at most 5.
HALFSTEP_API Tensor slice(Tensor x, const Shape& begin, const Shape& end, const Shape& step = {});
/// x with zeros before and after it: their numbers for each axis, of which there are at most 5.
HALFSTEP_API Tensor pad(Tensor x, const Shape& before, const Shape& after);
/// The parts one after the other along `axis` (negative: from the end); they are alike but for its extent.
HALFSTEP_API Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis);

/// Elementwise, with the shapes broadcast as NumPy does.
HALFSTEP_API Tensor add(Tensor a, Tensor b);
HALFSTEP_API Tensor sub(Tensor a, Tensor b);
HALFSTEP_API Tensor mul(Tensor a, Tensor b);
HALFSTEP_API Tensor div(Tensor a, Tensor b);
/// x times a constant.
HALFSTEP_API Tensor scale(Tensor x, float factor);

/// Sum over `axes` (all of them where empty; a negative axis counts from the end). The summed axes are dropped, or kept
/// as 1 with `keep`. Summed in f32.
HALFSTEP_API Tensor sum(Tensor x, std::vector<std::int64_t> axes = {}, bool keep = false);
/// The same, divided by the number of elements summed.
HALFSTEP_API Tensor mean(Tensor x, std::vector<std::int64_t> axes = {}, bool keep = false);

/// In training each element with probability `share`, from 0 to below 1, as 0, and the others divided by 1 - share:
/// Srivastava et al. 2014. What is drawn depends on the seed, the step and the place in x alone. In evaluation x
/// itself.
HALFSTEP_API Tensor dropout(Tensor x, float share);

/// The same values in another floating type, rounded to nearest.
HALFSTEP_API Tensor cast(Tensor x, DType dtype);

/// A label that marks a row to be left out of losses and metrics, as in the last batch of an evaluation.
inline constexpr std::uint32_t ignored_label = 0xFFFFFFFF;

/// Mean over the batch of -log softmax(logits)[label]; logits {n, classes}, labels u32 {n}: f32 scalar. Rows with
/// ignored_label do not count. Computed in f32, the largest logit subtracted first. With smoothing, that share of each
/// row's weight is spread over all classes: Szegedy et al. 2016.
HALFSTEP_API Tensor cross_entropy(Tensor logits, Tensor labels, float label_smoothing = 0);
/// Mean of (prediction - target)^2 over all elements: f32 scalar. This and those below are computed in f32.
HALFSTEP_API Tensor mse_loss(Tensor prediction, Tensor target);
/// Mean of |prediction - target|, whose slope at 0 is 0.
HALFSTEP_API Tensor l1_loss(Tensor prediction, Tensor target);
/// Mean of half the square of prediction - target, which from `delta` on goes on as a straight line: Huber 1964.
HALFSTEP_API Tensor huber_loss(Tensor prediction, Tensor target, float delta = 1);
/// Mean over all elements of -target log(sigmoid(logit)) - (1 - target) log(1 - sigmoid(logit)); targets are
/// probabilities of the logits' shape.
HALFSTEP_API Tensor binary_cross_entropy(Tensor logits, Tensor targets);
/// The share of rows whose largest logit is the label's: f32 scalar. Rows with ignored_label do not count.
HALFSTEP_API Tensor accuracy(Tensor logits, Tensor labels);

}  // namespace halfstep
