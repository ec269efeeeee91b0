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

/// Bytes of the tensors that a dispatch reads and writes; a tensor that it reads and writes counts twice.
std::uint64_t bytes_touched(const Program& program, const Dispatch& dispatch);

/// "scope/operator", or "operator".
std::string label_of(const graph::Node& node);

/// The noise stream of a tensor: a hash of its name, so that it does not depend on the other tensors of the program,
/// and of the index of the graph's repetition that computes it (ProgramBuilder::repeat).
std::uint32_t noise_stream(std::string_view tensor, std::uint32_t run = 0);

/// Lowers the nodes of a graph, and the engine's own dispatches, to a program.
class ProgramBuilder {
 public:
  struct Options {
    Partials partials{};
  };

  ProgramBuilder(const Target& target, Options options) : target_(target), options_(options) {}
  explicit ProgramBuilder(const Target& target) : ProgramBuilder(target, Options{}) {}

  /// A buffer that the caller provides when the program is recorded.
  BufferId buffer(std::string name);
  /// A tensor in a buffer of the caller.
  TensorId place(std::string name, TensorType type, Region region);
  /// Raw bytes in a buffer of the caller, such as the step's state.
  TensorId place_bytes(std::string name, std::uint64_t bytes, Region region);
  /// A tensor in the arena.
  TensorId tensor(std::string name, TensorType type);

  /// Assigns a tensor to a graph's value; a value that a node computes need not be bound.
  void bind(graph::ValueId value, TensorId tensor) { bound_[value] = tensor; }
  bool is_bound(graph::ValueId value) const { return bound_.contains(value); }
  /// The tensor of a value that was bound or lowered.
  TensorId tensor_of(const graph::Ir& ir, graph::ValueId value) const;
  /// Begins another repetition of the same graph: its nodes are lowered again, with new tensors and their own noise.
  void repeat(const graph::Ir& ir);

  /// How the dispatches from here on store tensors of narrow types.
  void store_narrow(Rounding rounding, Overflow overflow);
  const Storing& storing() const { return storing_; }
  /// Sets where seed and step are stored: required if anything is drawn at random.
  void key_noise(TensorId state) { program_.noise_key = state; }
  TensorId noise_key() const { return program_.noise_key.value(); }
  /// Sets the table of the scales that store_scaled() refers to.
  void key_scales(TensorId table) { program_.scales = table; }
  std::optional<TensorId> scales() const { return program_.scales; }
  /// Has a narrow tensor stored times a scale: the one at `place` of the table, from 1 on.
  void store_scaled(TensorId tensor, std::uint32_t place) { scaled_[tensor] = place; }
  /// The index of a tensor's scale; 0 if it has none.
  std::uint32_t scale_of(TensorId tensor) const;
  /// The noise stream for `what` in this repetition.
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
  /// Which of a choice's candidates to use; see Lowering::choose.
  std::size_t choose(Choice choice);
  /// Makes `alias` use the memory of `source`; if `alias` already has a place of its own, copies instead.
  void alias(TensorId alias, TensorId source, std::string label);
  /// Keeps a tensor's memory until the end of the program; returns the tensor that owns the memory.
  TensorId keep(TensorId tensor);

  const Target& target() const { return target_; }
  const Options& options() const { return options_; }
  const ProgramTensor& info(TensorId tensor) const { return program_.tensors.at(tensor); }
  /// Returns the program, with fusion if the target enables it.
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
