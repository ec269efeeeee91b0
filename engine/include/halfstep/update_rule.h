#pragma once

#include <halfstep/schedule.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep {

class Optimizer;

/// The settings of the parameters that one dispatch updates.
struct UpdateCall {
  float rate = 1;          ///< of their group: the kernel multiplies the rule's rate in the step by it
  float weight_decay = 0;  ///< of their group, or else of the rule
  /// LossScale::in_rate: gradients and states stay multiplied by the loss scale, and the rate is divided by it.
  bool scale_in_rate = false;
};

/// Describes a kernel that updates weights. Its GLSL includes shaders/optim/update.glsl, which declares the bindings
/// and specialization constants 0 to 6, and has functions that load and store weights, gradients and states. Where
/// weights of 16 bits are rounded at random or saturate, compile() throws Error for a kernel that stores them
/// otherwise.
struct UpdateKernel {
  /// The shader's name without its storage type: "sgd" for "sgd.f32", "sgd.f16", "sgd.packed" and "sgd.bf16".
  std::string shader;
  std::vector<std::uint32_t> constants;  ///< specialization constants 7, 8, ... up to 99
  std::vector<float> numbers;  ///< push constants after the words `first_quad`, `quads`, `first_moment`; at most 29
  /// An application's own kernel: its SPIR-V for each storage type that it must support: "f32", "f16", "packed" (f16 in
  /// 32-bit words) and "bf16". halfstep_kernels() of the CMake package makes all four. Empty: `shader` names one of the
  /// library's kernels.
  std::map<std::string, std::vector<std::uint32_t>> spirv{};
};

/// A parameter as a rule in operators finds it: f32 tensors of the parameter's shape.
struct UpdateTensors {
  Tensor gradient;             ///< unscaled and clipped
  Tensor weight;               ///< before the update
  std::vector<Tensor> states;  ///< in the order of UpdateRule::states
};

/// What a rule in operators makes of it, likewise.
struct UpdateResult {
  Tensor direction;            ///< the weight becomes weight - rate (direction + weight_decay weight)
  std::vector<Tensor> states;  ///< their next values, in the same order
};

struct NamedNumber {
  std::string name;
  double value = 0;
};

/// How weights are updated from their gradients: hyperparameters, the state tensors for each weight, and either a
/// kernel or a graph of operators. Immutable. An application may derive its own; see "Adding an optimizer" in
/// engine/README.md.
class HALFSTEP_API UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// The name stored in checkpoints: "adam". Resuming with a rule of another name is refused.
  virtual std::string name() const = 0;
  virtual const Schedule& rate() const = 0;
  virtual float weight_decay() const = 0;
  /// Throws Error if a hyperparameter is out of range. The trainer itself checks rate and weight_decay.
  virtual void check() const = 0;
  /// The names of the state tensors, one number per weight, initially zero: "momentum" is called "conv.weight.momentum"
  /// in checkpoints. In memory, each quad of four weights has one quad of each state, in this order, next to each
  /// other.
  virtual std::vector<std::string> states() const = 0;
  /// The kernel that updates weights and states, unless the rule is in operators. The default throws Error.
  virtual UpdateKernel kernel(const UpdateCall& call) const;

  /// Whether update() computes the update, rather than kernel().
  virtual bool in_operators() const { return false; }
  /// The update of one parameter, written in operators, as models are. It is called once for each parameter, and its
  /// operators run in every step; where the step or the parameter is skipped, their results are not used. Each
  /// operator stores its result in its tensor's type, f32 unless the rule casts, rounded to nearest whatever the
  /// trainer's precision. The default throws Error.
  virtual UpdateResult update(const UpdateTensors& now) const;

  /// The optimizer that updates a parameter of this name and shape in place of this one, if this one is not made for
  /// it; null otherwise. The pointer is valid as long as the rule, and the same for all parameters that share an
  /// optimizer.
  virtual const Optimizer* substitute(std::string_view /*name*/, const Shape& /*shape*/) const { return nullptr; }
  /// Hyperparameters, other than rate and weight_decay, that f16 may not represent. The log names them; they are used
  /// in f32.
  virtual std::vector<NamedNumber> small_numbers() const { return {}; }
  /// Whether kernel() supports UpdateCall::scale_in_rate.
  virtual bool takes_scale_in_rate() const { return false; }
};

/// An update rule as a value. Sgd, Adam and the others in optimizer.h convert to it. Copies share it, as does what it
/// is moved to.
class HALFSTEP_API Optimizer {
 public:
  /// Throws Error if `rule` is null.
  explicit Optimizer(std::shared_ptr<const UpdateRule> rule);

  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  ~Optimizer() = default;

  const UpdateRule& operator*() const { return *rule_; }
  const UpdateRule* operator->() const { return rule_.get(); }

 private:
  std::shared_ptr<const UpdateRule> rule_;
};

}  // namespace halfstep
