#pragma once

#include <halfstep/schedule.h>
#include <halfstep/update_rule.h>

#include <cstdint>
#include <optional>
#include <string>

namespace halfstep {

// Hyperparameters are kept and used in f32, whatever the model's precision.

/// Stochastic gradient descent. With g the gradient plus weight_decay times the weight:
/// v = momentum v + g; w -= rate v, or with Nesterov's look-ahead w -= rate (g + momentum v).
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
/// Every step moves a weight by the whole rate: choose a third to a tenth of AdamW's.
struct HALFSTEP_API Lion {
  Schedule rate = 0.0001F;
  float beta1 = 0.9F;
  float beta2 = 0.99F;
  float weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// Tieleman and Hinton 2012, with PyTorch's options. With g the gradient plus weight_decay times the weight:
/// v = alpha v + (1 - alpha) g^2; d = g / (sqrt(v) + epsilon); w -= rate d, or with momentum
/// b = momentum b + d; w -= rate b. `centered` takes the variance of g in place of v: v less the square of the
/// average of g. It is averaged as a variance, so that it cannot become negative by rounding.
struct HALFSTEP_API RmsProp {
  Schedule rate = 0.01F;
  float alpha = 0.99F;
  float epsilon = 1e-8F;
  float momentum = 0;
  bool centered = false;
  float weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// Parameters that are trained otherwise than the rest.
struct ParameterGroup {
  std::string pattern;                  ///< of their names, as matches() has it: "layer1/*", "*/bias"
  float rate = 1;                       ///< what the optimizer's rate is multiplied by
  std::optional<float> weight_decay{};  ///< in place of the optimizer's
  /// Not trained at all: no gradient, no moments, nothing kept for either, and no f32 master beside the f16 that
  /// operators read. Batch norm takes its running statistics then, which stay as they are, and is folded.
  bool frozen = false;
};

/// Weights as the last update left them, or their averages over all updates (TrainerOptions::average_decay).
enum class Weights : std::uint8_t { current, averaged };

}  // namespace halfstep
