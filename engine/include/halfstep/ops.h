#pragma once

#include <halfstep/tensor.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

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
/// {n, oh, ow, out} with oh = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1. The output padding
/// is smaller than the stride or the dilation.
HALFSTEP_API Tensor conv2d_transpose(Tensor images, Tensor weight, Conv2dOptions options = {},
                                     Pair output_padding = {0, 0});

/// x {..., c} plus b {c}.
HALFSTEP_API Tensor bias(Tensor x, Tensor b);

/// max(x, 0); the gradient at 0 is 0, at NaN that of the result.
HALFSTEP_API Tensor relu(Tensor x);
/// min(max(x, 0), 6); the gradient at 0 and 6 is 0, at NaN that of the result.
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
enum class Gelu : std::uint8_t {
  exact,  ///< x times the probability that a normally distributed number is below x
  tanh,   ///< the approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
};
/// Hendrycks and Gimpel 2016.
HALFSTEP_API Tensor gelu(Tensor x, Gelu form = Gelu::exact);
/// Gated units: silu(gate) or gelu(gate), times x of the same shape: Shazeer 2020.
HALFSTEP_API Tensor swiglu(Tensor gate, Tensor x);
HALFSTEP_API Tensor geglu(Tensor gate, Tensor x, Gelu form = Gelu::exact);

/// A layer of a network: weight {in, out} and bias {out}.
struct DenseLayer {
  Tensor weight;
  std::optional<Tensor> bias{};
};
struct FusedMlpOptions {
  /// Of one tensor, after each layer but the last: `relu`, or `[](Tensor x) { return leaky_relu(x, 0.2F); }`; none if
  /// empty.
  std::function<Tensor(Tensor)> activation = relu;
  /// The same after the last layer.
  std::function<Tensor(Tensor)> output_activation{};
};
/// x {..., in} through one or more layers: {..., out}. The network is one operator if it fits: 1 to 8 hidden layers
/// that are all equally wide, up to 128, and an activation that is one elementwise operator of its argument. A GPU may
/// then take each row through all layers in one kernel, and back in another; what lies between layers is rounded to the
/// type of the tensors, as it is layer by layer. A software driver trains layer by layer; the newest lavapipe predicts
/// and evaluates hidden layers up to 64 wide in one kernel, in f32 between layers whatever type the tensors have. Any
/// other network is `linear` and the activations. As one operator it has one type (Precision::layer), and is recomputed
/// with its first layer (TrainerOptions::recompute).
HALFSTEP_API Tensor fused_mlp(Tensor x, const std::vector<DenseLayer>& layers, const FusedMlpOptions& options = {});

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
/// towards them (with the unbiased variance); Trainer::compile throws Error where a channel has one element only.
/// Evaluation uses the running statistics; if x comes from a convolution or linear() in f32, they are folded into
/// its weights.
HALFSTEP_API Tensor batch_norm(Tensor x, Tensor weight, Tensor bias, RunningStatistics running,
                               BatchNormOptions options = {});

/// Normalises each image of x {n, ..., c} in `groups` groups of adjacent channels, by the mean and variance over all
/// elements of a group (for x {n, c}, one element per channel). Then multiplies by weight {c} and adds bias {c}: Wu and
/// He 2018.
HALFSTEP_API Tensor group_norm(Tensor x, std::int64_t groups, Tensor weight, Tensor bias, float epsilon = 1e-5F);
/// Group norm with one group per channel: Ulyanov et al. 2016.
HALFSTEP_API Tensor instance_norm(Tensor x, Tensor weight, Tensor bias, float epsilon = 1e-5F);
/// (x - mean) / sqrt(variance + epsilon) over the last axis of x {..., c}, times weight {c} and plus bias {c} as far as
/// they are given: Ba et al. 2016. Mean and variance are f32.
HALFSTEP_API Tensor layer_norm(Tensor x, std::optional<Tensor> weight = {}, std::optional<Tensor> bias = {},
                               float epsilon = 1e-5F);
/// x / sqrt(mean(x^2) + epsilon) over the last axis of x {..., c}, times weight {c} if given: Zhang and Sennrich 2019.
HALFSTEP_API Tensor rms_norm(Tensor x, std::optional<Tensor> weight = {}, float epsilon = 1e-6F);

struct Pool2dOptions {
  Pair kernel{2, 2};
  std::optional<Pair> stride{};  ///< defaults to the kernel's extents
  Pair padding{0, 0};            ///< at most half the kernel
  bool count_padding = true;     ///< average pooling: whether padding counts in the divisor
};
/// The maximum of each window of {n, h, w, c}; NaN is larger than any number. Among equal elements the first receives
/// the gradient. Where windows overlap, a pixel's gradient searches all windows that it is in: on a driver that ends
/// loops after 65,535 iterations, compiling throws Error if they have more pixels than that together.
HALFSTEP_API Tensor max_pool2d(Tensor images, Pool2dOptions options = {});
/// The mean of each window of {n, h, w, c}.
HALFSTEP_API Tensor average_pool2d(Tensor images, Pool2dOptions options = {});

/// The mean, or the maximum, over windows that divide images {n, h, w, c} into `size`: window i of an extent h begins
/// at floor(i h / size) and ends before ceil((i + 1) h / size). Unless `size` divides h, windows overlap.
HALFSTEP_API Tensor adaptive_average_pool2d(Tensor images, Pair size);
HALFSTEP_API Tensor adaptive_max_pool2d(Tensor images, Pair size);
/// The mean of each channel of each image {n, h, w, c}: {n, c}.
HALFSTEP_API Tensor global_average_pool(Tensor images);

/// The same elements, in the same order, with another shape. One extent may be -1; it is inferred.
HALFSTEP_API Tensor reshape(Tensor x, Shape shape);
/// {n, ...} as {n, product of the rest}.
HALFSTEP_API Tensor flatten(Tensor x);

/// The axes of x in another order: axis i of the result is axis axes[i] of x. Negative axes count from the end.
HALFSTEP_API Tensor permute(Tensor x, const std::vector<std::int64_t>& axes);
/// x with two axes exchanged.
HALFSTEP_API Tensor transpose(Tensor x, std::int64_t a = -2, std::int64_t b = -1);
/// Consecutive parts of x along `axis` (negative: from the end); the sizes add up to its extent.
HALFSTEP_API std::vector<Tensor> split(Tensor x, const std::vector<std::int64_t>& sizes, std::int64_t axis);
/// The part of x from `begin` up to but not including `end`, with a stride of `step` if given. Each has one number per
/// axis; there are at most 5 axes.
HALFSTEP_API Tensor slice(Tensor x, const Shape& begin, const Shape& end, const Shape& step = {});
/// x with `before` zeros before it and `after` zeros after it; one number per axis, at most 5 axes.
HALFSTEP_API Tensor pad(Tensor x, const Shape& before, const Shape& after);
/// Concatenates the parts along `axis` (negative: from the end). Their shapes are equal except along it.
HALFSTEP_API Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis);

/// x {n, g, positions, c} with the rows {n, g, count, c} in place of those from position first[i] on in batch i; first
/// is u32 {n}. Rows for positions that x does not have are dropped: first[i] = positions leaves batch i as it is. The
/// update of a cache (Scope::cache), which then changes in place. There is no gradient.
HALFSTEP_API Tensor store_rows(Tensor x, Tensor rows, Tensor first);

/// Elementwise, with NumPy broadcasting.
HALFSTEP_API Tensor add(Tensor a, Tensor b);
HALFSTEP_API Tensor sub(Tensor a, Tensor b);
HALFSTEP_API Tensor mul(Tensor a, Tensor b);
HALFSTEP_API Tensor div(Tensor a, Tensor b);
/// x times a constant.
HALFSTEP_API Tensor scale(Tensor x, float factor);
/// x plus a constant.
HALFSTEP_API Tensor offset(Tensor x, float amount);

/// Elementwise functions, to a few units in the last place of f32 on every device. Outside their domain they give NaN
/// or infinities, and gradients at its ends are infinite, as in PyTorch.
HALFSTEP_API Tensor exp(Tensor x);
HALFSTEP_API Tensor log(Tensor x);
HALFSTEP_API Tensor sqrt(Tensor x);
/// Of radians: to 2^-22 for |x| up to 8192, to 2^-18 up to 65536. NaN beyond, so that the loss shows it.
HALFSTEP_API Tensor sin(Tensor x);
HALFSTEP_API Tensor cos(Tensor x);
/// |x|; the gradient at 0 is 0.
HALFSTEP_API Tensor abs(Tensor x);
/// x^exponent; NaN for negative, finite x unless the exponent is a whole number. Of infinities as C's pow.
HALFSTEP_API Tensor pow(Tensor x, float exponent);
/// a^b, with NumPy broadcasting.
HALFSTEP_API Tensor pow(Tensor a, Tensor b);

/// The larger or smaller of two numbers, with NumPy broadcasting; NaN if either is. Equal ones share the gradient.
HALFSTEP_API Tensor maximum(Tensor a, Tensor b);
HALFSTEP_API Tensor minimum(Tensor a, Tensor b);
/// 1 where the comparison holds and 0 elsewhere, in the type of a and b, with NumPy broadcasting. Comparisons with NaN
/// do not hold, but for not_equal. There is no gradient.
HALFSTEP_API Tensor greater(Tensor a, Tensor b);
HALFSTEP_API Tensor greater_equal(Tensor a, Tensor b);
HALFSTEP_API Tensor less(Tensor a, Tensor b);
HALFSTEP_API Tensor less_equal(Tensor a, Tensor b);
HALFSTEP_API Tensor equal(Tensor a, Tensor b);
HALFSTEP_API Tensor not_equal(Tensor a, Tensor b);
/// a where the condition is not 0, else b; with NumPy broadcasting of all three, which have one type. The condition has
/// no gradient.
HALFSTEP_API Tensor where(Tensor condition, Tensor a, Tensor b);

/// Sum over `axes` (all if empty; a negative axis counts from the end). The summed axes are dropped, or kept with
/// extent 1 if `keep` is set. Accumulated in f32.
HALFSTEP_API Tensor sum(Tensor x, std::vector<std::int64_t> axes = {}, bool keep = false);
/// Likewise, divided by the number of elements summed.
HALFSTEP_API Tensor mean(Tensor x, std::vector<std::int64_t> axes = {}, bool keep = false);

/// exp(x) / sum(exp(x)) along `axis` (negative: from the end), computed in f32 after subtracting the largest element.
/// Where all elements are minus infinity, as where a mask hides everything, the result is 0.
HALFSTEP_API Tensor softmax(Tensor x, std::int64_t axis = -1);
/// Its logarithm.
HALFSTEP_API Tensor log_softmax(Tensor x, std::int64_t axis = -1);

/// In training, sets each element to 0 with `probability`, from 0 to below 1, and divides the others by 1 -
/// probability: Srivastava et al. 2014. The draws depend only on the seed, the step and the index in x. In evaluation,
/// returns x unchanged.
HALFSTEP_API Tensor dropout(Tensor x, float probability);

/// The same values in another floating type, rounded as the precision rounds activations.
HALFSTEP_API Tensor cast(Tensor x, DType dtype);

/// The rows of a table {rows, c} that u32 ids {...} name: {..., c}. `ignored_label` names a row of zeros. An id that is
/// no row gives NaN, so that the loss shows it. A row's gradient is the sum over the positions that name it, always in
/// the same order.
HALFSTEP_API Tensor embedding(Tensor table, Tensor ids);

enum class RotaryPairs : std::uint8_t {
  halves,      ///< elements i and i + c / 2, as in GPT-NeoX and Llama
  interleaved  ///< elements 2 i and 2 i + 1, as in Su et al. 2021
};
struct RotaryOptions {
  RotaryPairs pairs = RotaryPairs::halves;
  float base = 10000;
  float position_scale = 1;  ///< multiplies positions: 1 / 4 for a context four times as long (Chen et al. 2023)
  float base_scale = 1;      ///< multiplies the base by this to the power of c / (c - 2): NTK-aware scaling
  std::int64_t offset = 0;   ///< the first position
  std::int64_t axis = -2;    ///< along which positions count (negative: from the end)
};
/// Rotary positions: rotates pair i of each row of x {..., c}, at position p, by the angle p base^(-2 i / c): Su et al.
/// 2021. c is even.
HALFSTEP_API Tensor rotary(Tensor x, const RotaryOptions& options = {});

struct AttentionOptions {
  bool causal = false;      ///< query i sees no key after i
  std::int64_t window = 0;  ///< query i sees keys less than this away from i; 0: all
  /// u32 {n}: keys from a batch's length on are padding, which no query sees. They and their values are finite all the
  /// same: each is multiplied by a weight of 0.
  std::optional<Tensor> key_lengths{};
  /// u32 {n, keys}, of as many keys as queries, in place of key lengths: each row is several sequences one after
  /// another, packed without padding. A query sees the keys whose number here is its own. Where numbers do not decrease
  /// along a row, tiles without a segment in common are skipped.
  std::optional<Tensor> segments{};
  std::optional<Tensor> mask{};  ///< added to the scores; broadcasts to {n, h, queries, keys}
  std::optional<float> scale{};  ///< of the scores; defaults to 1 / sqrt(c)
  float dropout = 0;             ///< probability of dropping a weight in training
  bool fused = true;             ///< store no scores; otherwise, and if c or d exceed 256, they are stored
};
/// softmax(q k^T scale + mask) v for each head: queries q {n, h, queries, c}, keys k {n, g, keys, c} and values v
/// {n, g, keys, d} give {n, h, queries, d}. h is a multiple of g; h / g adjacent heads share keys and values: Vaswani
/// et al. 2017, Ainslie et al. 2023. A query that sees no key gives 0.
HALFSTEP_API Tensor attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options = {});

/// A label that excludes a row from losses and metrics, as for padding in the last batch of an evaluation.
inline constexpr std::uint32_t ignored_label = 0xFFFFFFFF;

/// Mean over the batch of -log softmax(logits)[label]; logits {n, classes}, labels u32 {n}: f32 scalar. Rows with
/// ignored_label, or with the label `ignore`, do not count; the loss of no rows is 0. Computed in f32 after subtracting
/// the largest logit; probabilities are not stored. With `label_smoothing`, that fraction of each row's target
/// probability is spread evenly over all classes: Szegedy et al. 2016.
HALFSTEP_API Tensor cross_entropy(Tensor logits, Tensor labels, float label_smoothing = 0,
                                  std::uint32_t ignore = ignored_label);
/// Mean of (prediction - target)^2 over all elements: f32 scalar. This and the losses below are computed in f32.
HALFSTEP_API Tensor mse_loss(Tensor prediction, Tensor target);
/// Mean of |prediction - target|; its gradient at 0 is 0.
HALFSTEP_API Tensor l1_loss(Tensor prediction, Tensor target);
/// Mean of half the square of prediction - target, continued as a straight line from `delta` on: Huber 1964.
HALFSTEP_API Tensor huber_loss(Tensor prediction, Tensor target, float delta = 1);
/// Mean over all elements of -target log(sigmoid(logit)) - (1 - target) log(1 - sigmoid(logit)); targets are
/// probabilities of the logits' shape.
HALFSTEP_API Tensor binary_cross_entropy(Tensor logits, Tensor targets);
/// The fraction of rows whose largest logit is the label's, and none of whose logits is NaN: f32 scalar. Rows with
/// ignored_label, or with the label `ignore`, do not count; of no rows it is 0.
HALFSTEP_API Tensor accuracy(Tensor logits, Tensor labels, std::uint32_t ignore = ignored_label);

}  // namespace halfstep
