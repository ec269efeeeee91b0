#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halfstep {

/// The factor that multiplies the loss before the backward pass, so that small gradients do not underflow in f16. The
/// update divides it out again in f32. It is stored and changed on the device: the host never waits for it.
struct HALFSTEP_API LossScale {
  enum class Kind : std::uint8_t { none, fixed, dynamic };
  Kind kind = Kind::none;
  float initial = 1;     ///< the scale of the first step
  float growth = 2;      ///< dynamic: the factor after `interval` consecutive steps with finite gradients
  float backoff = 0.5F;  ///< dynamic: the factor after a step whose gradients are not all finite
  std::uint32_t interval = 2000;
  float floor = 1;           ///< dynamic: the lower bound
  float ceiling = 16777216;  ///< dynamic: the upper bound (2^24)
  /// fixed, with Sgd: gradients and momentum stay multiplied by the scale, and the rate is divided by it instead.
  /// Files then hold the momentum so multiplied, and say it; Trainer::load converts it to the trainer's own scale.
  bool in_rate = false;

  static LossScale none() { return {}; }
  static LossScale fixed(float scale) { return {.kind = Kind::fixed, .initial = scale}; }
  /// Doubled after 2000 consecutive finite steps, halved on overflow: as PyTorch's GradScaler, which begins with 65536
  /// by default, and MindSpore's DynamicLossScaleManager, which begins with 2^24.
  static LossScale dynamic(float initial = 65536) { return {.kind = Kind::dynamic, .initial = initial}; }
};

/// How a result that a narrow type (one of 16 bits) does not have is stored: as the nearest that it has (ties to even),
/// or as one of the two around it, drawn so that its expectation is the result.
enum class Rounding : std::uint8_t { nearest, stochastic };

/// How each kind of narrow number is rounded when it is stored.
struct Roundings {
  Rounding weights = Rounding::nearest;
  Rounding optimizer = Rounding::nearest;    ///< the optimizer's moments, where they are narrow
  Rounding activations = Rounding::nearest;  ///< what the forward pass stores
  Rounding gradients = Rounding::nearest;    ///< what the backward pass stores
};

/// What a narrow type stores for a result half a unit or more above its largest number (of f16, 65504: from 65520 on):
/// infinity, or that number with the result's sign. NaN stays NaN.
enum class Overflow : std::uint8_t { infinity, saturate };

/// Scales of f16 gradients in addition to the loss scale, which is one for all.
enum class GradientScales : std::uint8_t {
  none,
  /// Each parameter's gradient is stored multiplied by its own power of two, from 2^-24 to 2^24, that puts its largest
  /// magnitude a factor of 16 below the end of f16's range. The device chooses the scale from the gradient that the
  /// previous step stored. The scale drops immediately and grows by at most 16x per step. If a gradient is too large
  /// for its scale, but finite in f32, only that tensor skips the update, and its scale is lowered. Infinities and NaN
  /// are caused earlier in the backward pass, and still skip the whole step.
  per_tensor,
};

/// The floating type an operator works in: a fixed one, or `widest` for that of its inputs, f32 where they differ.
using Compute = std::optional<DType>;
inline constexpr std::nullopt_t widest = std::nullopt;

/// The type that each list of operators computes in. Each operator declares which list it is on.
struct Lists {
  /// matmul, linear, conv2d, conv2d_transpose, bias, attention, fused_mlp, store_rows.
  Compute products = DType::f32;
  /// Of two tensors or more: add, sub, mul, div, pow, maximum, minimum, comparisons, where.
  Compute pairs = DType::f32;
  Compute reductions = DType::f32;  ///< sum, mean, softmax, log_softmax
  Compute norms = DType::f32;       ///< batch, group, instance, layer and RMS norm
  Compute others = DType::f32;      ///< activations, pooling, changes of shape
};

/// The accumulator type of matrix products and convolutions of f16 operands. With f16, the sum is rounded after every
/// block of k. Products of other types, of attention and of updates have sums in f32.
struct Partials {
  DType matmul = DType::f32;  ///< matmul, linear
  DType conv2d = DType::f32;
};

/// Conditions that stop training, in any tensor of a step's forward and backward pass. (What an update makes of sound
/// gradients is not looked at before the next step reads it.) The trainer then reports the operator that produced the
/// first such number. The step's update is skipped, so that all state is as before the step. The host waits for every
/// step, and every tensor is checked. Not with a dynamic loss scale, which finds its value by letting steps overflow:
/// compile() throws.
struct StopOn {
  bool overflow = false;        ///< an infinity, also one that was fed
  bool invalid = false;         ///< a NaN
  bool divide_by_zero = false;  ///< an infinity from a division: by 0, by too small a number, or of an infinity

  bool any() const { return overflow || invalid || divide_by_zero; }
};

/// Which types are used for storage and computation. Separate from the model: the same model trains with any Precision.
/// Losses, metrics, norm statistics and hyperparameters are always f32.
struct HALFSTEP_API Precision {
  std::string name = "float32";
  DType weights = DType::f32;     ///< as they are kept from step to step: f32, or as the parameters
  DType parameters = DType::f32;  ///< as operators read them, and as their gradients are stored
  /// The optimizer's states: f32, or as the parameters. What the type does not reach, f32 too, is stored as its largest
  /// number, whatever `overflow` says: an infinite average of squares would hold its weight for good, and no loss scale
  /// learn of it. A weight with an average of squares in f32 that is so large moves on as the average wears off.
  DType moments = DType::f32;
  Lists lists{};
  /// By an operator's name; overrides its list. compile() throws Error if the graph has no operator of a name, or one
  /// that takes its inputs as they are (losses, metrics, casts, encodings).
  std::map<std::string, Compute> operators{};
  std::vector<std::pair<std::string, DType>> layers{};  ///< by scope; overrides both; see layer()
  bool promote = false;  ///< whether operators accept inputs of two types; they then use the wider one
  Partials partials{};
  Roundings rounding{};
  Overflow overflow = Overflow::infinity;
  StopOn stop_on{};
  /// The same weights, bit for bit, on every device and driver that rounds sums and products of f32 to nearest even, as
  /// all that are known do: kernels are the same whatever the device has, sums have one order, nothing is contracted,
  /// subnormal numbers are 0, and quotients, roots, exponentials and logarithms are the engine's own. It takes longer.
  /// A subnormal number that the application gives, in f32 or bf16, counts as 0. compile() throws Error where the
  /// device has less than 8 storage buffers of 128 MiB, 128 invocations in a workgroup, 16 KiB of shared memory, 128
  /// bytes of push constants or 65,535 loop rounds; where an operator takes more than 8 storage buffers, one for each
  /// 128 MiB of a tensor; and where an application's own kernel computes in other floats than f32, or calls a GLSL
  /// function, such as sin, for which Halfstep has no implementation of its own.
  bool reproducible = false;
  LossScale loss_scale{};
  /// Whether linear layers that work in f16 multiply numbers of 8 bits, E4M3, with sums in f32: each factor of the
  /// product and of its gradients is rounded to nearest, after a power of two of the tensor's own that makes its
  /// largest magnitude 224 to 448. Matrix units for E4M3 (VK_EXT_shader_float8) may be used where the device has them;
  /// without, layers take longer than in f16. Weights and results keep their type. Other products, such as matmul,
  /// conv2d and attention, are as they were.
  bool float8_linear = false;
  GradientScales gradient_scales = GradientScales::none;  ///< if parameters are f16 and overflow is infinity

  /// O0: everything in f32; no loss scale.
  static Precision float32() { return {}; }
  /// O1: f32 weights; products in f16, reductions and norms in f32, everything else in its input type; dynamic loss
  /// scale.
  static Precision autocast();
  /// O2: f16 activations and gradients, f32 master weights with an f16 copy, f32 norms and losses, dynamic loss scale.
  static Precision mixed();
  /// O3: f16 throughout, including norms and weights; weights are rounded stochastically and have no master copy; fixed
  /// loss scale.
  static Precision float16(float loss_scale = 256);
  /// As mixed, in bf16, which has f32's range: no loss scale. Weights are f32 masters with a bf16 copy; or bf16 alone,
  /// rounded stochastically, where `weights` says so ("bfloat16_weights").
  static Precision bfloat16(DType weights = DType::f32);
  /// As mixed, with `float8_linear`.
  static Precision float8();
  /// "O0" to "O3", or a preset's name. Throws Error for any other.
  static Precision level(std::string_view name);
  /// The names of the presets.
  static std::vector<std::string> names();

  /// Makes the operators of layers whose scope matches `pattern` compute in `dtype`. An operator's scope is that of its
  /// parameters, without the first input if others are parameters too. The first match counts. `*` stands for any
  /// characters, `?` for one. Throws Error unless `dtype` is floating; compile() does if no scope of an operator
  /// matches, or only those of operators that take their inputs as they are, and if an operator has parameters in
  /// several scopes, as fused_mlp() may, with different types.
  Precision& layer(std::string pattern, DType dtype);
};

}  // namespace halfstep
