#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attribute.h"

namespace halfstep::plan {
class Lowering;
}

namespace halfstep::graph {

class Operator;

/// Which of a policy's lists (halfstep::Lists) an operator is on: how the precision pass treats its floating inputs.
enum class Numerics : std::uint8_t {
  product,    ///< matrix products and convolutions: most of the work; safe in f16 with f32 accumulators
  pair,       ///< elementwise, of two tensors
  reduction,  ///< sums, means, softmax: many numbers are reduced to few
  norm,       ///< normalisations
  other,      ///< activations, pooling, reshaping
  as_is,      ///< accepts each input in its own type (casts; losses and metrics, which compute in f32)
};

/// "products", "pairs", ...: the list's name.
std::string_view name(Numerics numerics);

/// The arguments of an operator's vjp().
struct Vjp {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  /// Gradient of the loss for each output, times the loss scale; empty if the loss does not depend on it.
  std::span<const std::optional<Tensor>> cotangents;
  /// Which inputs need a gradient.
  std::vector<bool> needed;
  /// f32 {}; undefined where operators of the library ask others of the library for gradients.
  Tensor loss_scale{};
};

/// The gradient for each input, in order; empty for inputs that have or need none.
using Gradients = std::vector<std::optional<Tensor>>;

/// An operator is a value that knows its shapes, gradient and dispatches; there is no registry.
class Operator {
 public:
  virtual ~Operator() = default;

  /// The name in errors and labels: "conv2d".
  virtual std::string name() const = 0;
  /// All parameters other than its inputs. Two operators of one name and equal attributes compute the same.
  virtual Attributes attributes() const = 0;
  /// The types of the outputs. Throws Error "[name] expected ..., got ...".
  virtual std::vector<TensorType> infer(std::span<const TensorType> inputs) const = 0;
  /// Gradients for the inputs, written in operators. The default is an error: not differentiable.
  virtual Gradients vjp(const Vjp& call) const;
  /// Appends the dispatches that compute the outputs.
  virtual void lower(plan::Lowering& out) const = 0;
  virtual Numerics numerics() const { return Numerics::other; }
  /// Whether it takes states as they are, in f32, beside inputs of a narrow type. All others that read one compute in
  /// f32, and so do those that lead from there to the next value of a state, unless the policy gives them a type by
  /// layer or by name.
  virtual bool keeps_states() const { return false; }
  /// Of losses and metrics of classes, whose second input holds labels: each the number of a class, of as many as the
  /// first input's last axis is long. The first output is a mean over the rows that count. Those with ignored_label do
  /// not, nor do those with the label that this returns, which need not be a class. The second output, if there is one,
  /// is as ops::statistics_shape says.
  virtual std::optional<std::uint32_t> also_ignored() const { return std::nullopt; }
  /// Whether an infinite result from finite inputs is a division by zero.
  virtual bool divides() const { return false; }
  /// Whether it begins with the mean and variance of each channel (of the last axis) of its first input, over all other
  /// axes. The operator that computes that input may then output them as well.
  virtual bool reads_channel_moments(std::span<const TensorType> /*inputs*/) const { return false; }
  /// Whether the output has exactly the first input's values, in a type that may be wider: their moments are the same.
  virtual bool keeps_values(std::span<const TensorType> /*inputs*/) const { return false; }
  /// Whether the output is a copy of its input's bits, possibly rearranged. If not, it is computed, and rounded as the
  /// policy says.
  virtual bool moves_bits(std::span<const TensorType> /*inputs*/) const { return false; }
  /// Whether its kernels may read what they stored of a result, as those of an application may.
  virtual bool reads_results() const { return false; }
  /// Whether the first output may be the same memory as the first input, as that of a cache and its next value is.
  virtual bool works_in_place() const { return false; }
  /// The replacement of the first output in inference; empty to keep the operator.
  virtual std::optional<Tensor> inference(std::span<const Tensor> inputs) const;
  /// The first output times `factor` plus `offset`, both {c} along its last axis and of a type at least as wide,
  /// computed by the same operator with other weights; empty if that is not possible.
  virtual std::optional<Tensor> with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset) const;
  /// The first output of the same from factors of 8 bits (Precision::float8_linear), of inputs in f16; empty if there
  /// is no such form.
  virtual std::optional<Tensor> in_float8(std::span<const Tensor> inputs) const;
};

/// Applies an operator to tensors of one graph.
std::vector<Tensor> apply(std::shared_ptr<const Operator> op, std::span<const Tensor> inputs);
/// The same for an operator with one output.
Tensor apply_one(std::shared_ptr<const Operator> op, std::span<const Tensor> inputs);

}  // namespace halfstep::graph
