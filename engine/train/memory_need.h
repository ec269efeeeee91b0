#pragma once

#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/inspector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/memory_plan.h"
#include "state/store_spec.h"
#include "step/step_program.h"
#include "vk/device/context.h"

/// The device memory that a training takes, known before any of it is allocated.
namespace halfstep::train {

/// Bytes that a training takes.
struct MemoryParts {
  std::uint64_t store = 0;    ///< whatever the batch
  std::uint64_t weights = 0;  ///< the same, in the arena: what an evaluation computes of weights alone
  std::uint64_t batch = 0;    ///< grows with it

  std::uint64_t all() const { return store + weights + batch; }
};

/// What MemoryNeed::check throws.
class TooLarge : public Error {
 public:
  TooLarge(const std::string& text, const MemoryParts& parts, std::uint64_t limit)
      : Error(text, ErrorCode::out_of_memory), parts_(parts), limit_(limit) {}

  /// Whether a training would fit, about, whose batch is `part` of this one's: what is computed of weights may be gone
  /// when most of the rest is alive.
  bool may_fit(double part) const {
    constexpr double slack = 1.25;
    const auto weights = static_cast<double>(parts_.weights);
    const double others = std::max(weights, part * (weights + static_cast<double>(parts_.batch)));
    return static_cast<double>(parts_.store) + others <= slack * static_cast<double>(limit_);
  }

 private:
  MemoryParts parts_;
  std::uint64_t limit_;
};

class MemoryNeed {
 public:
  /// Of a store of this spec, and a step at this batch size (0: unknown).
  MemoryNeed(const state::StoreSpec& spec, const step::StepProgram& step, std::int64_t batch);
  /// Of another program, which takes turns with the step's in one arena.
  void add(const step::StepProgram& program);
  /// The same of one that evaluates.
  void add_evaluation(const step::StepProgram& program);

  /// The arena that all programs have room in.
  const plan::Arena& arena() const { return arena_; }
  std::uint64_t bytes() const { return parts().all(); }
  /// Throws TooLarge that says what takes how much, and what batch fits, if the device, or `limit` unless that is 0,
  /// has not so much memory.
  void check(const vk::Context& context, std::uint64_t limit) const;
  /// What a failed allocation says, with what takes how much, and what batch fits.
  std::string explain(std::string_view failure, const vk::Context& context) const;

 private:
  /// "700.1 MiB of activations (the largest: ...), 40.0 KiB of weights, ...".
  std::string text() const;
  std::string hint(std::uint64_t limit) const;
  MemoryParts parts() const;

  PlanSummary summary_;
  plan::Arena arena_;
  std::uint64_t store_bytes_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::uint64_t of_weights_ = 0;  ///< MemoryParts::weights
  std::int64_t batch_ = 0;
  std::vector<std::string> largest_;  ///< of the program that takes most of the arena
};

}  // namespace halfstep::train
