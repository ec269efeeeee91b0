#pragma once

#include <halfstep/guest.h>

#include <cstdint>
#include <vector>

#include "plan/program.h"

namespace halfstep::step {

struct StepGraph;
struct SharedTensor;

/// Reads and writes tensors in an application's memory, where rows are not padded.
class SharedTensors {
 public:
  /// Adds the buffers that StepGraph::read and written are in to the program, each once, after those of the table.
  SharedTensors(plan::ProgramBuilder& builder, const StepGraph& graph);

  /// Appends what gives the inputs their values, of one micro-batch of those that lie one after the other.
  void read(std::uint32_t micro_batch);
  /// Appends what writes the output.
  void write();
  const std::vector<DeviceBuffer>& buffers() const { return buffers_; }

 private:
  /// Memory as it is bound, and the element in it that the tensor begins with.
  struct Bound {
    plan::TensorId tensor = 0;
    std::uint32_t first = 0;
  };

  Bound bind(const SharedTensor& shared);

  plan::ProgramBuilder& builder_;
  const StepGraph& graph_;
  std::vector<DeviceBuffer> buffers_;
  std::vector<Bound> read_;
  std::vector<Bound> written_;  ///< one or none
};

}  // namespace halfstep::step
