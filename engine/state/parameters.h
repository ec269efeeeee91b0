#pragma once

#include <halfstep/precision.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir.h"

namespace halfstep::state {

/// How a parameter is trained, apart from what holds for all.
struct Training {
  std::uint32_t optimizer = 0;  ///< in StoreLayout::optimizers
  std::uint32_t states = 0;     ///< that the optimizer keeps for each weight
  float rate = 1;               ///< what the optimizer's rate is multiplied by
  float weight_decay = 0;
  bool frozen = false;
  bool unreached = false;  ///< frozen because the loss does not depend on it: its f32 values are kept all the same

  friend bool operator==(const Training&, const Training&) = default;
};

/// What states are numbered from, so that none has the draws of a parameter.
inline constexpr std::uint32_t first_state = 1U << 31;

/// One parameter's place in the stores that hold them all.
struct ParameterEntry {
  std::string name;
  TensorType type;  ///< as operators read it
  Initializer initializer;
  std::uint64_t first_element = 0;  ///< counted over all parameters, padding included
  std::uint64_t first_moment = 0;   ///< of its optimizer's states, counted over those of all parameters
  Axes stored{};                    ///< the order of its axes in files; empty: as they are
  std::uint32_t index = 0;          ///< among the graph's parameters, as it was written; states: from `first_state` on
  Training training{};
};

/// Neighbours in the stores that are trained alike.
struct ParameterRun {
  std::uint64_t first_element = 0;
  std::uint64_t padded_elements = 0;
  std::uint64_t first_moment = 0;  ///< as in ParameterEntry
  Training training{};
};

/// How all parameters lie: one after the other, those that are trained alike together and the frozen ones last, at the
/// same elements in the weights, the f32 masters and the gradients, so that one dispatch checks or updates them all.
/// The moments lie in the same order, of each quad of weights as many quads as its optimizer keeps states. The places
/// do not depend on the device, so neither does the noise that is keyed on them.
class ParameterLayout {
 public:
  ParameterLayout() = default;
  /// `training` holds an entry for each of `parameters`, which are in the order that they shall lie in.
  ParameterLayout(const graph::Ir& ir, std::span<const graph::ValueId> parameters, std::span<const Training> training);

  const std::vector<ParameterEntry>& entries() const { return entries_; }
  /// The entry of a name; null where there is none.
  const ParameterEntry* find(std::string_view name) const;
  const std::vector<ParameterRun>& runs() const { return runs_; }
  /// Elements of those that are not frozen, which come first.
  std::uint64_t trained_elements() const { return trained_elements_; }
  /// Numbers that optimizers keep for the trained ones.
  std::uint64_t moment_elements() const { return moment_elements_; }
  /// Elements up to the last parameter whose f32 values are of use: it is trained or unreached, or read in f32. Where
  /// operators read f16 copies, masters end there.
  std::uint64_t master_elements() const { return master_elements_; }
  /// Elements of all parameters, with the padding of their rows and between them (which stays zero).
  std::uint64_t padded_elements() const { return padded_elements_; }
  /// Trainable scalars.
  std::int64_t count() const { return count_; }

 private:
  std::vector<ParameterEntry> entries_;
  std::vector<ParameterRun> runs_;
  std::uint64_t padded_elements_ = 0;
  std::uint64_t trained_elements_ = 0;
  std::uint64_t moment_elements_ = 0;
  std::uint64_t master_elements_ = 0;
  std::int64_t count_ = 0;
};

/// How weights and moments are kept.
struct WeightStorage {
  DType compute = DType::f32;  ///< of the weights that operators read, and of gradients
  bool scaled = false;         ///< gradients are stored times scales of their tensors' own
  bool master = true;          ///< f32 weights are kept
  bool copy = false;           ///< and a copy in `compute` beside them, which operators read
  DType moments = DType::f32;  ///< of the optimizers' states
};

/// The stream of the noise that weights are rounded with.
inline constexpr std::uint32_t weight_rounding_stream = 1;

WeightStorage weight_storage(const Precision& precision);

/// The first values of a parameter, in the order of its shape: keyed on (seed, its index, element).
std::vector<float> initial_values(const ParameterEntry& entry, std::uint64_t seed);

}  // namespace halfstep::state
