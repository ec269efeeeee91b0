#pragma once

#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/inspector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "state/store_spec.h"
#include "step/step_program.h"
#include "vk/device/context.h"

/// The device memory that a training takes, known before any of it is allocated.
namespace halfstep::train {

/// What MemoryNeed::check throws.
class TooLarge : public Error {
 public:
  TooLarge(const std::string& text, std::uint64_t store_bytes, std::uint64_t batch_bytes, std::uint64_t limit)
      : Error(text, ErrorCode::out_of_memory), store_bytes_(store_bytes), batch_bytes_(batch_bytes), limit_(limit) {}

  /// Whether a training would fit, about, whose batch is `part` of this one's.
  bool may_fit(double part) const {
    constexpr double slack = 1.25;
    return static_cast<double>(store_bytes_) + part * static_cast<double>(batch_bytes_) <=
           slack * static_cast<double>(limit_);
  }

 private:
  std::uint64_t store_bytes_;
  std::uint64_t batch_bytes_;
  std::uint64_t limit_;
};

class MemoryNeed {
 public:
  /// Of a store of this spec, and a step at this batch size (0: unknown).
  MemoryNeed(const state::StoreSpec& spec, const step::StepProgram& step, std::int64_t batch);
  /// Of a program beside the step's, in the same arena: what it is given and gives back.
  void add_slots(const step::StepProgram& program);

  std::uint64_t bytes() const { return store_bytes_ + batch_bytes_; }
  /// Throws TooLarge that says what takes how much, and what batch fits, if the device, or `limit` unless that is 0,
  /// has not so much memory.
  void check(const vk::Context& context, std::uint64_t limit) const;
  /// What a failed allocation says, with what takes how much, and what batch fits.
  std::string explain(std::string_view failure, const vk::Context& context) const;

 private:
  /// "700.1 MiB of activations (the largest: ...), 40.0 KiB of weights, ...".
  std::string text() const;
  std::string hint(std::uint64_t limit) const;

  PlanSummary summary_;
  std::uint64_t store_bytes_ = 0;  ///< whatever the batch
  std::uint64_t batch_bytes_ = 0;  ///< grows with it
  std::int64_t batch_ = 0;
  std::vector<std::string> largest_;
};

}  // namespace halfstep::train
