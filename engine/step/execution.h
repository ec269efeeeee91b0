#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "plan/plan.h"
#include "step/recording.h"
#include "vk/command/timeline.h"
#include "vk/shader/pipelines.h"

namespace halfstep::step {

struct ExecutionOptions {
  plan::LoweringOptions lowering;
  std::uint64_t guard_bytes = 0;  ///< round every tensor, filled with a pattern that guards_intact() looks for
  bool reuse = true;              ///< whether tensors share memory over time
  bool timestamps = false;
  Rounding rounding = Rounding::nearest;  ///< of narrow results
  Overflow overflow = Overflow::infinity;
  std::uint64_t seed = 0;  ///< what noise is keyed on
  std::uint64_t step = 0;
  std::optional<plan::Target> target;  ///< lower for this instead of what the device says of itself
};

/// Runs a graph forward, as it is: for tests and benchmarks, which feed it and read any value. All memory starts out
/// as 0xFF bytes, which no operator may mistake for data.
class Execution {
 public:
  /// Computes `outputs` and what they depend on.
  Execution(vk::Context& context, const graph::Ir& ir, std::vector<graph::ValueId> outputs, ExecutionOptions options);
  Execution(vk::Context& context, const graph::Ir& ir, std::vector<graph::ValueId> outputs)
      : Execution(context, ir, std::move(outputs), ExecutionOptions{}) {}
  ~Execution();

  /// Gives an input or parameter its values, in the order of its shape.
  void set(graph::ValueId value, std::span<const float> values);
  void set(graph::ValueId value, std::span<const std::uint32_t> values);
  /// Submits once and waits.
  void run();
  /// The bytes of an output, or of an input, padding included.
  std::vector<std::byte> memory(graph::ValueId value);
  std::vector<float> floats(graph::ValueId value);
  std::vector<std::uint32_t> words(graph::ValueId value);

  /// Whether every byte between the tensors is as it was before the first run.
  bool guards_intact();
  const plan::Plan& plan() const { return plan_; }
  /// Those of the plan's program, in its order.
  std::array<const vk::Buffer*, 3> buffers() const { return {&arena_, &inputs_, &state_}; }
  /// The plan's tensor that a value is in.
  plan::TensorId place_of(graph::ValueId value) const { return tensors_.at(value); }
  /// When each dispatch of the last run ran. Needs ExecutionOptions::timestamps.
  const std::vector<DispatchTime>& dispatch_times() const { return recording_->dispatch_times(); }
  /// How many submits a run takes.
  std::size_t pieces() const { return recording_->pieces(); }

 private:
  void lower(const graph::Ir& ir, const std::vector<graph::ValueId>& outputs);
  const plan::ProgramTensor& tensor(graph::ValueId value) const;
  const vk::Buffer& buffer_of(const plan::ProgramTensor& tensor) const;
  void write(graph::ValueId value, std::span<const std::byte> bytes);

  vk::Context& context_;
  ExecutionOptions options_;
  std::map<graph::ValueId, plan::TensorId> tensors_;
  std::map<graph::ValueId, TensorType> types_;
  std::uint64_t input_bytes_ = 0;
  plan::Plan plan_;
  vk::Buffer arena_;
  vk::Buffer inputs_;
  vk::Buffer state_;  ///< a state::StepState
  vk::Pipelines pipelines_;
  std::unique_ptr<Recording> recording_;
  vk::Timeline timeline_;
};

}  // namespace halfstep::step
