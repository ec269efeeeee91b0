#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir.h"
#include "plan/program.h"
#include "step/step_program.h"

namespace halfstep::step {

/// What computed a value.
struct Producer {
  std::string label;
  bool divides = false;  ///< whether it is an operator that divides
  std::span<const graph::ValueId> inputs{};
};

/// Records statistics of the values that a Watch names, and keeps the memory of those that it wants kept.
class Watcher {
 public:
  /// Of a step of `micro_batches`. Rows of statistics are appended to a report of `report_bytes`. Builder, graph and
  /// that number must outlive the watcher.
  Watcher(plan::ProgramBuilder& builder, const graph::Ir& ir, Watch watch, std::uint32_t micro_batches,
          std::uint64_t& report_bytes)
      : builder_(builder),
        ir_(ir),
        watch_(std::move(watch)),
        micro_batches_(micro_batches),
        report_bytes_(report_bytes) {}

  /// To be called when `value` was just computed. Does nothing unless the watch names it, nor where the operator left
  /// it out, as attention that is computed as products does with what only its own kernels read.
  void look(graph::ValueId value, const Producer& producer, std::uint32_t micro_batch);
  std::vector<Watched> take() { return std::move(watched_); }

 private:
  /// A value as it is now, in memory that nothing changes until the end of the step: its own, or that of a copy.
  Recorded recorded(graph::ValueId value, std::uint32_t micro_batch);
  /// Whether the rest of the step changes what is in a buffer, such as weights, where the recorder needs it after that.
  bool is_changed(plan::BufferId buffer, std::uint32_t micro_batch) const;

  plan::ProgramBuilder& builder_;
  const graph::Ir& ir_;
  Watch watch_;
  std::uint32_t micro_batches_;
  std::uint64_t& report_bytes_;
  std::vector<Watched> watched_;
};

}  // namespace halfstep::step
