#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "plan/choice.h"
#include "step/recording.h"
#include "vk/command/timeline.h"

namespace halfstep::tune {

/// A trial's program, with its operands one after the other in a buffer.
struct TrialProgram {
  plan::Program program;
  std::vector<plan::TensorId> inputs;
  plan::TensorId output;
  std::uint64_t operand_bytes;
};

TrialProgram lowered(const plan::Trial& trial, const plan::Target& target);

/// A trial recorded on a device.
class TrialRun {
 public:
  TrialRun(vk::Context& context, vk::Pipelines& pipelines, const plan::Target& target, const plan::Trial& trial);

  /// Whether a choice of `kind` in it takes the candidate called `name`, on a target that names that one.
  bool takes(std::string_view kind, std::string_view name) const;
  /// Microseconds from the start to the end of its dispatches; measured on the host if the queue has no timestamps.
  double run();
  /// The output of the last run.
  std::vector<float> result();

 private:
  TrialRun(vk::Context& context, vk::Pipelines& pipelines, const plan::Target& target, const plan::Trial& trial,
           TrialProgram made);
  void fill();

  vk::Context& context_;
  const plan::Trial& trial_;
  std::vector<plan::TensorId> inputs_;
  plan::TensorId output_;
  plan::Plan plan_;
  vk::Buffer arena_;
  vk::Buffer operands_;
  std::unique_ptr<step::Recording> recording_;
  vk::Timeline timeline_;
};

}  // namespace halfstep::tune
