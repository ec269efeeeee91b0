#pragma once

#include <halfstep/data.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "data/upload_ring.h"
#include "run/program.h"
#include "train/epoch_position.h"

namespace halfstep::train {

/// The batches that steps draw from the training set, where there is one, and the count of these steps.
class Batches {
 public:
  /// `set`, which may be null, must outlive this. `batch` are the samples of a step. `resident` says whether the set is
  /// kept on the device. Throws Error where the set has not one batch.
  Batches(const Dataset* set, std::int64_t batch, bool resident);

  /// Makes the order of samples from `seed`, taken up at `first_step`, when `drawn` batches were drawn.
  void start(std::uint64_t seed, std::uint64_t first_step, std::int64_t drawn);
  /// Throws Error where there is no set.
  void check_set() const;
  /// Puts the next batch into a slot of a training program. Blocks until it was gathered, where it has to be.
  void fill(const run::Program& program, run::Slot& slot);
  /// Counts a step that was submitted, or one less: the next one takes its place, and its batch.
  void count_step() { ++steps_; }
  void take_step_back() { --steps_; }

  bool has_set() const { return set_ != nullptr; }
  std::uint64_t seed() const { return seed_; }
  /// Steps of the run, those before a checkpoint included.
  std::uint64_t steps() const { return steps_; }
  /// Batches drawn from the training set so far, counted from its first epoch on.
  std::int64_t drawn() const { return static_cast<std::int64_t>(steps_) + drawn_ahead_; }
  EpochSize epoch_size() const { return {set_->count, batch_}; }
  /// How often fill() had to wait.
  std::uint64_t waits() const { return waits_ + (ring_ ? ring_->waits() : 0); }

 private:
  const Dataset* set_;
  std::int64_t batch_;
  bool resident_;
  std::uint64_t seed_ = 0;
  std::optional<BatchSampler> sampler_;
  std::unique_ptr<data::UploadRing> ring_;  ///< where the set is not resident
  std::uint64_t steps_ = 0;
  /// Batches drawn less steps: other than 0 after a checkpoint of another batch size or number of samples.
  std::int64_t drawn_ahead_ = 0;
  std::uint64_t waits_ = 0;  ///< of rings before ring_
};

/// What a set takes on the device: its samples, then its labels.
std::uint64_t resident_bytes(const Dataset& set);
/// Puts it there.
void upload_set(state::ParameterStore& store, const Dataset& set);

}  // namespace halfstep::train
