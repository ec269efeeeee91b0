#pragma once

#include <halfstep/tensor.h>

#include <array>
#include <optional>

/// The operators. Each takes and returns symbolic tensors. Shapes are checked immediately, and an Error names the
/// operator. Images are {batch, height, width, channels}; convolution weights are {height, width, in / groups, out}.
namespace halfstep {

/// {height, width}, for strides, padding and the like.
using Pair = std::array<std::int64_t, 2>;

struct MatmulOptions {
  bool transpose_a = false;  ///< a is {..., k, m}
  bool transpose_b = false;  ///< b is {..., n, k}
};
/// a {..., m, k} times b {..., k, n}: {..., m, n}. The batch axes are equal, or one side has none and is broadcast.
HALFSTEP_API Tensor matmul(Tensor a, Tensor b, MatmulOptions options = {});

/// x {..., in} times weight {in, out}, plus bias {out} if given: {..., out}.
HALFSTEP_API Tensor linear(Tensor x, Tensor weight, std::optional<Tensor> bias = {});

struct Conv2dOptions {
  Pair stride{1, 1};
  Pair padding{0, 0};  ///< zeros on each side
  Pair dilation{1, 1};
  std::int64_t groups = 1;
};
/// Cross-correlation of images {n, h, w, in} with weight {kh, kw, in / groups, out}, plus bias {out} if given: {n, oh,
/// ow, out} with oh = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1.
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
/// x if x > 0, else slope x. `slope` is at least 0; it is also the gradient at 0.
HALFSTEP_API Tensor leaky_relu(Tensor x, float slope = 0.01F);
/// 1 / (1 + exp(-x)).
HALFSTEP_API Tensor sigmoid(Tensor x);
HALFSTEP_API Tensor tanh(Tensor x);
/// x sigmoid(x), also called swish: Elfwing et al. 2018.
HALFSTEP_API Tensor silu(Tensor x);
/// x relu6(x + 3) / 6: Howard et al. 2019.
HALFSTEP_API Tensor hardswish(Tensor x);

/// The mean and variance that batch norm stores for inference: f32 {c} each, made by Scope::state.
struct RunningStatistics {
  Tensor mean;
  Tensor variance;
};
struct BatchNormOptions {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  ///< the weight of the new batch in the running statistics
};
/// (x - mean) / sqrt(variance + epsilon) * weight + bias for x {n, ..., c}, weight {c} and bias {c}: Ioffe and Szegedy
/// 2015. Training uses the mean and variance of the batch, in f32, and every update moves the running statistics
/// towards them (with the unbiased variance). Evaluation uses the running statistics; if x comes from a convolution,
/// they are folded into its weights.
HALFSTEP_API Tensor batch_norm(Tensor x, Tensor weight, Tensor bias, RunningStatistics running,
                               BatchNormOptions options = {});

/// Normalises each image of x {n, ..., c} in `groups` groups of adjacent channels, by the mean and variance over all
/// elements of a group (for x {n, c}, one element per channel). Then multiplies by weight {c} and adds bias {c}: Wu and
/// He 2018.
HALFSTEP_API Tensor group_norm(Tensor x, std::int64_t groups, Tensor weight, Tensor bias, float epsilon = 1e-5F);
/// Group norm with one group per channel: Ulyanov et al. 2016.
HALFSTEP_API Tensor instance_norm(Tensor x, Tensor weight, Tensor bias, float epsilon = 1e-5F);

struct Pool2dOptions {
  Pair kernel{2, 2};
  std::optional<Pair> stride{};  ///< defaults to the kernel's extents
  Pair padding{0, 0};            ///< at most half the kernel
  bool count_padding = true;     ///< average pooling: whether padding counts in the divisor
};
/// The maximum of each window of {n, h, w, c}. Among equal elements the first receives the gradient.
HALFSTEP_API Tensor max_pool2d(Tensor images, Pool2dOptions options = {});
/// The mean of each window of {n, h, w, c}.
HALFSTEP_API Tensor average_pool2d(Tensor images, Pool2dOptions options = {});

/// The mean, or the maximum, over windows that divide images {n, h, w, c} into `size`: window i of an extent h begins
/// at floor(i h / size) and ends before ceil((i + 1) h / size). A size above h gives overlapping windows.
HALFSTEP_API Tensor adaptive_average_pool2d(Tensor images, Pair size);
HALFSTEP_API Tensor adaptive_max_pool2d(Tensor images, Pair size);
/// The mean of each channel of each image {n, h, w, c}: {n, c}.
HALFSTEP_API Tensor global_average_pool(Tensor images);

/// The same elements, in the same order, with another shape. One extent may be -1; it is inferred.
HALFSTEP_API Tensor reshape(Tensor x, Shape shape);
/// {n, ...} as {n, product of the rest}.
HALFSTEP_API Tensor flatten(Tensor x);

/// The part of x from `begin` up to but not including `end`, with a stride of `step` if given. Each has one number per
/// axis; there are at most 5 axes.
HALFSTEP_API Tensor slice(Tensor x, const Shape& begin, const Shape& end, const Shape& step = {});
/// x with `before` zeros before it and `after` zeros after it; one number per axis, at most 5 axes.
HALFSTEP_API Tensor pad(Tensor x, const Shape& before, const Shape& after);
/// Concatenates the parts along `axis` (negative: from the end). Their shapes are equal except along it.
HALFSTEP_API Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis);

/// Elementwise, with NumPy broadcasting.
HALFSTEP_API Tensor add(Tensor a, Tensor b);
HALFSTEP_API Tensor sub(Tensor a, Tensor b);
HALFSTEP_API Tensor mul(Tensor a, Tensor b);
HALFSTEP_API Tensor div(Tensor a, Tensor b);
/// x times a constant.
HALFSTEP_API Tensor scale(Tensor x, float factor);

/// Sum over `axes` (all if empty; a negative axis counts from the end). The summed axes are dropped, or kept with
/// extent 1 if `keep` is set. Accumulated in f32.
HALFSTEP_API Tensor sum(Tensor x, std::vector<std::int64_t> axes = {}, bool keep = false);
/// Likewise, divided by the number of elements summed.
HALFSTEP_API Tensor mean(Tensor x, std::vector<std::int64_t> axes = {}, bool keep = false);

/// In training, sets each element to 0 with probability `share`, from 0 to below 1, and divides the others by 1 -
/// share: Srivastava et al. 2014. The draws depend only on the seed, the step and the index in x. In evaluation,
/// returns x unchanged.
HALFSTEP_API Tensor dropout(Tensor x, float share);

/// The same values in another floating type, rounded to nearest.
HALFSTEP_API Tensor cast(Tensor x, DType dtype);

/// A label that excludes a row from losses and metrics, as for padding in the last batch of an evaluation.
inline constexpr std::uint32_t ignored_label = 0xFFFFFFFF;

/// Mean over the batch of -log softmax(logits)[label]; logits {n, classes}, labels u32 {n}: f32 scalar. Rows with
/// ignored_label do not count. Computed in f32 after subtracting the largest logit. With `label_smoothing`, that
/// fraction of each row's target probability is spread evenly over all classes: Szegedy et al. 2016.
HALFSTEP_API Tensor cross_entropy(Tensor logits, Tensor labels, float label_smoothing = 0);
/// Mean of (prediction - target)^2 over all elements: f32 scalar. This and the losses below are computed in f32.
HALFSTEP_API Tensor mse_loss(Tensor prediction, Tensor target);
/// Mean of |prediction - target|; its gradient at 0 is 0.
HALFSTEP_API Tensor l1_loss(Tensor prediction, Tensor target);
/// Mean of half the square of prediction - target, continued as a straight line from `delta` on: Huber 1964.
HALFSTEP_API Tensor huber_loss(Tensor prediction, Tensor target, float delta = 1);
/// Mean over all elements of -target log(sigmoid(logit)) - (1 - target) log(1 - sigmoid(logit)); targets are
/// probabilities of the logits' shape.
HALFSTEP_API Tensor binary_cross_entropy(Tensor logits, Tensor targets);
/// The fraction of rows whose largest logit is the label's: f32 scalar. Rows with ignored_label do not count.
HALFSTEP_API Tensor accuracy(Tensor logits, Tensor labels);

}  // namespace halfstep
