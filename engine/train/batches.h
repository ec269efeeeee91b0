#pragma once

#include <halfstep/data.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/upload_ring.h"
#include "run/program.h"
#include "step/share.h"
#include "train/epoch_position.h"

namespace halfstep::train {

/// A batch to gather.
struct Wanted {
  std::int64_t number = 0;
  std::uint32_t bucket = 0;
  std::span<const std::uint32_t> indices{};  ///< of its samples
};

/// When the loader's thread gathered batches, from when it is asked to be noted on.
class LoadTimes {
 public:
  using Clock = std::chrono::steady_clock;
  struct Load {
    std::int64_t batch;
    Clock::time_point begin;
    Clock::time_point end;
  };

  void start();
  /// Called by the loader's thread.
  void add(const Load& load);
  /// Those since start(); none are noted any more.
  std::vector<Load> stop();

 private:
  std::mutex mutex_;
  bool noting_ = false;
  std::vector<Load> loads_;
};

/// What steps draw their batches from: a set or a source.
struct Supply {
  std::string name;
  std::int64_t count = 0;                ///< samples of an epoch; 0: unbounded
  std::vector<std::uint32_t> buckets{};  ///< of each sample; empty: there are none
  /// Gathers a batch, on the loader's thread. Null where the set is kept on the device.
  std::function<void(const Wanted& wanted, data::HostBatch& batch)> gather{};

  BatchSampler sampler(std::int64_t batch, std::uint64_t seed) const;
};

/// The batches that steps draw from the training set or source, where there is one, and the count of these steps.
class Batches {
 public:
  /// `batch` are the samples of a step, over all ranks, of which this one draws its share. Throws Error where an epoch
  /// of the supply has not one batch.
  Batches(std::optional<Supply> supply, std::int64_t batch, const step::Share& share);

  /// Makes the order of samples from `seed`, taken up at `first_step`, when `drawn` batches were drawn.
  void start(std::uint64_t seed, std::uint64_t first_step, std::int64_t drawn);
  /// Draws another share from the next batch on. A source without a count keeps equal shares.
  void take(const step::Share& share);
  /// Throws Error where there is nothing to draw from.
  void check_supply() const;
  /// The bucket of the next batch; 0 where there are none.
  std::uint32_t next_bucket() { return sampler_ ? sampler_->bucket(drawn()) : 0; }
  /// Puts the next batch into a slot of a training program. Blocks until it was gathered, where it has to be.
  void fill(const run::Program& program, run::Slot& slot);
  /// Counts a step that was submitted, or one less: the next one takes its place, and its batch.
  void count_step() { ++steps_; }
  void take_step_back() { --steps_; }

  /// Whether there is a number of samples that makes an epoch.
  bool has_epochs() const { return supply_ && supply_->count > 0; }
  std::uint64_t seed() const { return seed_; }
  /// Steps of the run, those before a checkpoint included.
  std::uint64_t steps() const { return steps_; }
  /// Batches drawn so far, counted from the first epoch on.
  std::int64_t drawn() const { return static_cast<std::int64_t>(steps_) + drawn_ahead_; }
  /// Whether they come from a source without epochs, and how many all ranks have asked it for.
  bool is_unbounded() const { return supply_ && supply_->count == 0; }
  std::int64_t asked() const { return drawn() * share_.ranks; }
  /// Where has_epochs().
  EpochSize epoch_size() const { return {supply_->count, batch_}; }
  LoadTimes& load_times() { return *loads_; }
  /// How often fill() had to wait.
  std::uint64_t waits() const { return waits_ + (ring_ ? ring_->waits() : 0); }

 private:
  std::span<const std::uint32_t> own(std::span<const std::uint32_t> batch) const;

  std::optional<Supply> supply_;
  std::int64_t batch_;
  step::Share share_;
  std::uint64_t seed_ = 0;
  std::unique_ptr<LoadTimes> loads_ = std::make_unique<LoadTimes>();
  std::optional<BatchSampler> sampler_;     ///< where there are epochs
  std::unique_ptr<data::UploadRing> ring_;  ///< where it is not
  std::uint64_t steps_ = 0;
  /// Batches drawn less steps: other than 0 after a checkpoint of another batch size or number of samples.
  std::int64_t drawn_ahead_ = 0;
  std::uint64_t waits_ = 0;  ///< of rings before ring_
};

}  // namespace halfstep::train
