#pragma once

#include <halfstep/schedule.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace halfstep {

/// What an update rule is given for the parameters that one dispatch updates.
struct UpdateCall {
  float rate = 1;          ///< their group's: a kernel multiplies the step's rate, StepState::rate, by it
  float weight_decay = 0;  ///< their group's, or the rule's own
  /// LossScale::in_rate: gradients and states keep the loss scale, and the rate is divided by it.
  bool scale_in_rate = false;
};

/// A kernel that updates weights, as a plain value. Its GLSL includes shaders/optim/update.glsl, which has the
/// bindings, specialization constants 0 to 5, and functions that load and store weights, gradients and states.
struct UpdateKernel {
  /// The shader's name without its storage type: "sgd" for "sgd.f32", "sgd.f16" and "sgd.packed".
  std::string shader;
  std::vector<std::uint32_t> constants;  ///< specialization constants 6, 7, ...
  std::vector<float> numbers;            ///< push constants after the two words `first_quad` and `quads`; 30 at most
  /// An application's own kernel: its SPIR-V for each storage type ("f32", "f16", "packed") that it is to run in.
  /// Empty: `shader` is one of the library's.
  std::map<std::string, std::vector<std::uint32_t>> spirv{};
};

/// Where a rule's kernel reads beta^(updates made + 1) from StepState::beta1_power and beta2_power.
struct BiasCorrection {
  float beta1 = 0;
  float beta2 = 0;
};

struct NamedNumber {
  std::string name;
  double value = 0;
};

/// How weights are updated from their gradients: hyperparameters, the state tensors kept for each weight, and the
/// kernel. Immutable. An application may derive its own; see "Adding an optimizer" in engine/README.md.
class HALFSTEP_API UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// What checkpoints are said to be of: "adam". Resuming with a rule of another name is refused.
  virtual std::string name() const = 0;
  virtual const Schedule& rate() const = 0;
  virtual float weight_decay() const = 0;
  /// Throws Error where a hyperparameter other than rate and weight_decay, which the trainer checks, is out of range.
  virtual void check() const = 0;
  /// The numbers kept for each weight, zero at first: "momentum" is kept in checkpoints as "conv.weight.momentum". In
  /// memory a quad of four weights has a quad of each state, in this order, side by side.
  virtual std::vector<std::string> states() const = 0;
  virtual UpdateKernel kernel(const UpdateCall& call) const = 0;

  virtual std::optional<BiasCorrection> bias_correction() const { return std::nullopt; }
  /// Hyperparameters beside rate and weight_decay that f16 might not hold. The log names them; they are used in f32.
  virtual std::vector<NamedNumber> small_numbers() const { return {}; }
  /// Whether kernel() takes UpdateCall::scale_in_rate.
  virtual bool takes_scale_in_rate() const { return false; }
};

/// An update rule as a value. Sgd, Adam and the others of optimizer.h convert to it.
class HALFSTEP_API Optimizer {
 public:
  /// Throws Error where there is no rule.
  explicit Optimizer(std::shared_ptr<const UpdateRule> rule);

  const UpdateRule& operator*() const { return *rule_; }
  const UpdateRule* operator->() const { return rule_.get(); }

 private:
  std::shared_ptr<const UpdateRule> rule_;
};

}  // namespace halfstep
