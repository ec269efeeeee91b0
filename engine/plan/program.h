#pragma once

#include <halfstep/precision.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir.h"
#include "plan/choice.h"
#include "plan/dispatch.h"
#include "plan/graph_values.h"
#include "plan/lowering.h"
#include "plan/store_rules.h"
#include "plan/target.h"

namespace halfstep::plan {

/// A buffer of a program: an index into Program::buffers. Buffer 0 is the arena.
using BufferId = std::uint32_t;
inline constexpr BufferId arena_buffer = 0;

/// A range of a buffer.
struct Region {
  BufferId buffer = arena_buffer;
  std::uint64_t offset = 0;  ///< set by the planner if the buffer is the arena
};

struct ProgramTensor {
  std::string name;
  TensorType type;
  std::uint64_t bytes = 0;
  Region region;
  bool kept = false;  ///< read by the host after the last dispatch, so its memory is not reused
};

/// Dispatches in order, and the tensors that they access.
struct Program {
  std::vector<ProgramTensor> tensors;
  std::vector<Dispatch> dispatches;
  std::vector<std::string> buffers{"arena"};
  std::vector<Choice> choices;         ///< that operators left open
  std::size_t dispatches_unfused = 0;  ///< the number of dispatches without fusion
  /// The StepState whose seed and step key the noise.
  std::optional<TensorId> noise_key;
  /// The f32 table of the scales of tensors; Storing::scales are indices into it.
  std::optional<TensorId> scales;
};

/// Bytes of the tensors that a dispatch reads and writes, or of their parts that it looks up; a tensor that it reads and
/// writes counts twice.
std::uint64_t bytes_touched(const Program& program, const Dispatch& dispatch);

/// "scope/operator", or "operator".
std::string label_of(const graph::Node& node);

/// What a program is lowered with.
struct LoweringOptions {
  Partials partials{};
  RankStatistics statistics{};
};

/// Lowers the nodes of a graph, and the engine's own dispatches, to a program.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const Target& target, LoweringOptions options = {}) : target_(target), options_(options) {}

  /// A buffer that the caller provides when the program is recorded.
  BufferId buffer(std::string name);
  /// A tensor in a buffer of the caller.
  TensorId place(std::string name, TensorType type, Region region);
  /// Raw bytes in a buffer of the caller, such as the step's state.
  TensorId place_bytes(std::string name, std::uint64_t bytes, Region region);
  /// A tensor in the arena.
  TensorId tensor(std::string name, TensorType type);

  /// The tensors of the values of the graph that is lowered.
  GraphValues& values() { return values_; }
  /// How the dispatches from here on store.
  StoreRules& stores() { return stores_; }

  /// What the dispatches from here on belong to.
  void phase(Phase phase) { phase_ = phase; }

  /// Appends a node's dispatches. Its inputs must be bound or lowered.
  void lower(const graph::Ir& ir, const graph::Node& node);
  /// Appends a dispatch, checked against the device's limits. Throws Error naming the tensor or operator that
  /// exceeds one.
  void dispatch(Dispatch dispatch);
  /// Has the host wait for what was appended so far; see Dispatch::awaited.
  void await() { program_.dispatches.back().awaited = true; }
  /// See Lowering::provide_moments and moments_of.
  void provide_moments(TensorId tensor, const ChannelMoments& moments) { moments_[resolve(tensor)] = moments; }
  std::optional<ChannelMoments> moments_of(TensorId tensor) const;
  /// See Lowering::count_unfused.
  void count_unfused(std::ptrdiff_t dispatches) { unfused_ += dispatches; }
  /// Which of a choice's candidates to use; see Lowering::choose.
  std::size_t choose(Choice choice);
  /// Makes `alias` use the memory of `source`; if `alias` already has a place of its own, copies instead, times the
  /// scale that it may have.
  void alias(TensorId alias, TensorId source, std::string label);
  /// Copies a tensor to another of its type, times the scale that this one may have.
  void copy(TensorId to, TensorId from, std::string label);
  /// Keeps a tensor's memory until the end of the program; returns the tensor that owns the memory.
  TensorId keep(TensorId tensor);

  const Target& target() const { return target_; }
  const LoweringOptions& options() const { return options_; }
  /// The accumulator types of what is lowered from here on; returns those before.
  Partials set_partials(const Partials& partials) { return std::exchange(options_.partials, partials); }
  const ProgramTensor& info(TensorId tensor) const { return program_.tensors.at(tensor); }
  /// Whether a tensor has values to read: a dispatch so far wrote it, or it lies in a buffer of the caller.
  bool is_written(TensorId tensor) const;
  /// Returns the program, with fusion if the target enables it.
  Program finish();

 private:
  TensorId resolve(TensorId tensor) const;
  void count_writers(const Dispatch& dispatch);
  std::uint32_t writers(TensorId root) const;

  Target target_;
  LoweringOptions options_;
  Program program_;
  GraphValues values_;
  StoreRules stores_;
  Phase phase_ = Phase::forward;
  std::vector<std::uint32_t> writers_;  ///< of each tensor: how many dispatches write it
  std::ptrdiff_t unfused_ = 0;          ///< dispatches that there would be more without fusion
  std::map<TensorId, TensorId> aliases_;
  std::map<TensorId, ChannelMoments> moments_;  ///< that came with tensors
};

}  // namespace halfstep::plan
