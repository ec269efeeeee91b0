#pragma once

#include <halfstep/schedule.h>
#include <halfstep/update_rule.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halfstep {

// Hyperparameters are stored and used in f32, whatever the model's precision.

/// Stochastic gradient descent. With g the gradient plus weight_decay times the weight:
/// v = momentum v + g; w -= rate v, or with Nesterov momentum w -= rate (g + momentum v).
struct HALFSTEP_API Sgd {
  Schedule rate = 0.01F;
  float momentum = 0;
  bool nesterov = false;
  float weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor): `.optimizer = Sgd{}` is how it is used
};

/// Kingma and Ba 2015, with weight decay added to the gradient.
struct HALFSTEP_API Adam {
  Schedule rate = 0.001F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// Adam with decoupled weight decay: Loshchilov and Hutter 2019.
struct HALFSTEP_API AdamW {
  Schedule rate = 0.001F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.01F;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// The sign of an average of gradients, with decoupled weight decay: Chen et al. 2023. With g the gradient:
/// w -= rate (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g.
/// Every step moves each weight by the full rate: choose a third to a tenth of AdamW's.
struct HALFSTEP_API Lion {
  Schedule rate = 0.0001F;
  float beta1 = 0.9F;
  float beta2 = 0.99F;
  float weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// Tieleman and Hinton 2012, with PyTorch's options. With g the gradient plus weight_decay times the weight:
/// v = alpha v + (1 - alpha) g^2; d = g / (sqrt(v) + epsilon); w -= rate d, or with momentum
/// b = momentum b + d; w -= rate b. `centered` replaces v by the variance of g: v minus the square of the average of g.
/// It is averaged as a variance, so rounding cannot make it negative.
struct HALFSTEP_API RmsProp {
  Schedule rate = 0.01F;
  float alpha = 0.99F;
  float epsilon = 1e-8F;
  float momentum = 0;
  bool centered = false;
  float weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// Momentum, orthogonalised: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks". With g the
/// gradient and b the momentum: m = b m + (1 - b) g; u = m, or with Nesterov momentum b m + (1 - b) g. O is u as a
/// matrix {all axes but the last, the last}, with each singular value moved to between 0.68 and 1.21 by five steps of a
/// Newton-Schulz iteration. w -= rate (0.2 sqrt(max(rows, columns)) O + weight_decay w): the factor gives the update
/// the root mean square of AdamW's, so that AdamW's rates and decays fit: Liu et al. 2025, "Muon is scalable for LLM
/// training". It updates parameters of two axes or more; `others` updates the rest. The authors leave embeddings, first
/// and last layers to AdamW.
struct HALFSTEP_API Muon {
  Schedule rate = 0.001F;
  float momentum = 0.95F;
  bool nesterov = true;
  float weight_decay = 0.01F;
  DType products = DType::f32;  ///< what the iteration's matrix products compute and store: a floating type
  std::vector<std::string> others_patterns{};  ///< of names, see matches(): `others` updates these parameters too
  std::optional<AdamW> others{};               ///< empty: with this rate and weight_decay

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// Parameters that are trained with other settings than the rest. compile() throws Error for a group that has none.
struct ParameterGroup {
  std::string pattern;                  ///< of their names, see matches(): "layer1/*", "*/bias"
  float rate = 1;                       ///< multiplies the rate of their optimizer
  std::optional<float> weight_decay{};  ///< replaces that of their optimizer, also without decay_vectors
  /// Not trained at all: these parameters have no gradient, no moments and no memory for either, and f16 parameters
  /// have no f32 master. Batch norm then uses its running statistics, which do not change, and is folded
  /// as in a Predictor.
  bool frozen = false;
  /// Updates these parameters in place of the trainer's, by its own schedule. Not for a frozen group.
  std::optional<Optimizer> optimizer{};
};

/// The weights after the last update, or their averages over all updates (TrainerOptions::ema_decay).
enum class Weights : std::uint8_t { current, averaged };

}  // namespace halfstep
