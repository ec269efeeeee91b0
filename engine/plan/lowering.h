#pragma once

#include <halfstep/precision.h>
#include <halfstep/tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/choice.h"
#include "plan/dispatch.h"
#include "plan/layout.h"
#include "plan/over_ranks.h"
#include "plan/target.h"

namespace halfstep::plan {

class ProgramBuilder;

/// The moments of every channel of a tensor {..., channels}, of `rows` rows at a time: f32 {1, parts, 2, channels}, the
/// mean and the sum of the squares of the differences from it.
struct ChannelMoments {
  TensorId parts = 0;
  std::int64_t rows = 0;
};

/// What keys random numbers.
struct Noise {
  TensorId key = 0;          ///< the StepState with the seed and the step
  std::uint32_t stream = 0;  ///< see plan::noise_stream
};

/// The arguments of an operator's lower(): its operands, the device, and functions to add tensors and dispatches.
class Lowering {
 public:
  Lowering(ProgramBuilder& builder, std::string label, std::vector<TensorId> inputs, std::vector<TensorId> outputs,
           bool moments_wanted = false)
      : builder_(&builder),
        label_(std::move(label)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        moments_wanted_(moments_wanted) {}

  const Target& target() const;
  TensorId input(std::size_t i) const { return inputs_.at(i); }
  TensorId output(std::size_t i) const { return outputs_.at(i); }
  std::size_t input_count() const { return inputs_.size(); }
  std::size_t output_count() const { return outputs_.size(); }
  TensorType type(TensorId tensor) const;
  TensorType input_type(std::size_t i) const { return type(input(i)); }

  /// A tensor that exists only within this operator, whose own name for it is `name`.
  TensorId workspace(std::string_view name, TensorType type);
  /// Makes output `out` use the memory of input `in`, without a dispatch; both must have the same size.
  void alias(std::size_t out, std::size_t in);
  /// Lowers the operator as others: `build` gets a value for each input, and returns one for each of the first outputs.
  /// They are operators of a graph of their own, which draws the noise that this operator would.
  void lower_as(const std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>& build);
  /// Likewise, with sums of products in f32 whatever the precision asks for.
  void lower_with_wide_sums(const std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>& build);
  /// Appends a dispatch; an empty label becomes the node's.
  void dispatch(Dispatch dispatch);
  /// Whether an operator that follows asks for the moments of the first output's channels
  /// (graph::Operator::reads_channel_moments), and that output is stored as it is.
  bool moments_wanted() const { return moments_wanted_; }
  /// Says that the dispatch before this leaves the moments of `tensor`'s channels in `moments`.
  void provide_moments(TensorId tensor, const ChannelMoments& moments);
  /// The moments that came with `tensor`; nothing where none did, or several dispatches wrote it.
  std::optional<ChannelMoments> moments_of(TensorId tensor) const;

  /// Over how many ranks over_ranks() takes statistics.
  std::int64_t ranks() const;
  /// What ranks have of `own`, f32 of `rows` on each of them, together; `own` itself where there are no others.
  TensorId over_ranks(TensorId own, OverRanks kind, std::int64_t rows);

  /// Adds to the number of dispatches that the operator would need without fusion.
  void count_unfused(std::ptrdiff_t dispatches);

  /// Which of a choice's candidates to use: the one that Target::choices names for its key, else the first.
  std::size_t choose(Choice choice);
  /// The accumulator types of matrix products and convolutions; f32 where the operator's inputs are not f16.
  Partials partials() const;
  /// How narrow tensors are stored.
  const Storing& storing() const;
  /// What keys the noise for `what` in this repetition of the graph.
  Noise noise(std::string_view what) const;
  /// "scope/operator".
  const std::string& label() const { return label_; }

 private:
  /// Of the first output, which no other tensor has.
  const std::string& name_of_first() const;

  ProgramBuilder* builder_;
  std::string label_;
  std::vector<TensorId> inputs_;
  std::vector<TensorId> outputs_;
  bool moments_wanted_ = false;
};

/// The value of a shader's STORAGE axis for tensors of `dtype`: "f32", "f16", "packed", ...
std::string_view storage(const Target& target, DType dtype);

/// The workgroup size of a one-dimensional kernel. It is small on a software driver, which runs invocations one after
/// the other and distributes workgroups over its threads.
std::uint32_t flat_local_size(const Target& target);

/// The workgroups for `count` invocations in groups of `local_size`, folded over x and y to stay within the target's
/// limit. The shader gets the linear index from linear_invocation() in common/indexing.glsl and returns if it is
/// `count` or more. Throws Error if that index would exceed 32 bits.
std::array<std::uint32_t, 3> groups_for(const Target& target, std::int64_t count, std::uint32_t local_size);

}  // namespace halfstep::plan
