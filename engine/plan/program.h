#pragma once

#include <halfstep/precision.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir.h"
#include "plan/choice.h"
#include "plan/dispatch.h"
#include "plan/lowering.h"
#include "plan/target.h"

namespace halfstep::plan {

/// A buffer of a program: an index into Program::buffers. Buffer 0 is the arena.
using BufferId = std::uint32_t;
inline constexpr BufferId arena_buffer = 0;

/// A stretch of a buffer.
struct Region {
  BufferId buffer = arena_buffer;
  std::uint64_t offset = 0;  ///< worked out by the planner where the buffer is the arena
};

struct ProgramTensor {
  std::string name;
  TensorType type;
  std::uint64_t bytes = 0;
  Region region;
  bool kept = false;  ///< read by the host after the last dispatch, so that its memory is not used again
};

/// Dispatches in order, and the tensors they work on.
struct Program {
  std::vector<ProgramTensor> tensors;
  std::vector<Dispatch> dispatches;
  std::vector<std::string> buffers{"arena"};
  std::vector<Choice> choices;         ///< that operators left open
  std::size_t dispatches_unfused = 0;  ///< how many there would be without fusion
  /// The StepState whose seed and step noise is keyed on.
  std::optional<TensorId> noise_key;
  /// The table of scales, f32, that tensors are stored times: Storing::scales are places in it.
  std::optional<TensorId> scales;
};

/// Bytes of the tensors that a dispatch reads and writes; of one that it does both to, twice.
std::uint64_t bytes_touched(const Program& program, const Dispatch& dispatch);

/// "scope/operator", or "operator".
std::string label_of(const graph::Node& node);

/// What the noise for a tensor is keyed on: a number made of its name, so that it does not depend on the other tensors
/// of the program, and of the run that computes it (ProgramBuilder::repeat).
std::uint32_t noise_stream(std::string_view tensor, std::uint32_t run = 0);

/// Turns the nodes of a graph, and dispatches of the engine's own, into a program.
class ProgramBuilder {
 public:
  struct Options {
    Partials partials{};
  };

  ProgramBuilder(const Target& target, Options options) : target_(target), options_(options) {}
  explicit ProgramBuilder(const Target& target) : ProgramBuilder(target, Options{}) {}

  /// A buffer that the caller provides when the program is recorded.
  BufferId buffer(std::string name);
  /// A tensor in a buffer of the caller's.
  TensorId place(std::string name, TensorType type, Region region);
  /// Raw bytes in a buffer of the caller's, such as the step's state.
  TensorId place_bytes(std::string name, std::uint64_t bytes, Region region);
  /// A tensor in the arena.
  TensorId tensor(std::string name, TensorType type);

  /// Says which tensor a graph's value is; a value that a node computes need not be bound.
  void bind(graph::ValueId value, TensorId tensor) { bound_[value] = tensor; }
  bool is_bound(graph::ValueId value) const { return bound_.contains(value); }
  /// The tensor of a value that was bound or lowered.
  TensorId tensor_of(const graph::Ir& ir, graph::ValueId value) const;
  /// Begins a further run of the same graph: its nodes are lowered again, to tensors and with noise of their own.
  void repeat(const graph::Ir& ir);

  /// How the dispatches from here on store tensors of narrow types.
  void store_narrow(Rounding rounding, Overflow overflow);
  const Storing& storing() const { return storing_; }
  /// Where seed and step are kept: needed where anything is drawn at random.
  void key_noise(TensorId state) { program_.noise_key = state; }
  TensorId noise_key() const { return program_.noise_key.value(); }
  /// Where the scales are kept that store_scaled() speaks of.
  void key_scales(TensorId table) { program_.scales = table; }
  std::optional<TensorId> scales() const { return program_.scales; }
  /// Has a narrow tensor stored times a scale: the one at `place` of the table, from 1 on.
  void store_scaled(TensorId tensor, std::uint32_t place) { scaled_[tensor] = place; }
  /// The place of a tensor's scale; 0 where it is stored as it is.
  std::uint32_t scale_of(TensorId tensor) const;
  /// The stream of the noise for `what` in this run.
  std::uint32_t stream_of(std::string_view what) const { return noise_stream(what, run_); }

  /// Appends a node's dispatches. Its inputs must be bound or lowered.
  void lower(const graph::Ir& ir, const graph::Node& node);
  /// Appends a dispatch, checked against the device's limits. Throws Error naming the tensor or operator that
  /// exceeds one.
  void dispatch(Dispatch dispatch);
  /// See Lowering::provide_moments and moments_of.
  void provide_moments(TensorId tensor, const ChannelMoments& moments) { moments_[resolve(tensor)] = moments; }
  std::optional<ChannelMoments> moments_of(TensorId tensor) const;
  /// Counts dispatches that there would be more without fusion; see Lowering::leave_out.
  void leave_out(std::ptrdiff_t dispatches) { left_out_ += dispatches; }
  /// Which of a choice's candidates to take; see Lowering::choose.
  std::size_t choose(Choice choice);
  /// Makes `alias` the memory of `source`; where `alias` has a place of its own, copies instead.
  void alias(TensorId alias, TensorId source, std::string label);
  /// Keeps a tensor's memory until the end; returns the tensor whose memory that is.
  TensorId keep(TensorId tensor);

  const Target& target() const { return target_; }
  const Options& options() const { return options_; }
  const ProgramTensor& info(TensorId tensor) const { return program_.tensors.at(tensor); }
  /// The program, with its elementwise work fused where the target says so.
  Program finish();

 private:
  TensorId resolve(TensorId tensor) const;
  bool moments_wanted(const graph::Ir& ir, const graph::Node& node) const;
  void check_limits(const Dispatch& dispatch) const;
  void set_storing(Dispatch& dispatch) const;
  void set_scales(Dispatch& dispatch) const;
  bool writes_narrow(const Operand& operand) const;

  Target target_;
  Options options_;
  Program program_;
  Storing storing_;
  std::uint32_t run_ = 0;        ///< counts repeat()
  std::ptrdiff_t left_out_ = 0;  ///< dispatches
  std::map<graph::ValueId, TensorId> bound_;
  std::map<TensorId, TensorId> aliases_;
  std::map<TensorId, ChannelMoments> moments_;  ///< that came with tensors
  std::map<TensorId, std::uint32_t> scaled_;    ///< the places of their scales
};

}  // namespace halfstep::plan
