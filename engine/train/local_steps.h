#pragma once

#include <halfstep/trainer_options.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "run/program.h"
#include "train/checkpoint_contents.h"
#include "train/workspace.h"

namespace halfstep::train {

/// Throws Error where options do not go with Ranks::sync_every.
void check_local_steps(const TrainerOptions& options);

/// Ranks that make steps by themselves and synchronise their weights after some of them (Ranks::sync_every). Weights
/// that are trained, and states, are each rank's own in between. Of those of the last synchronisation there is a copy
/// in host memory, in f32, with the outer step's momentum. Every function but those that say so is called by all ranks.
class LocalSteps {
 public:
  /// Both must outlive it.
  LocalSteps(const run::Workspace& workspace, const TrainerOptions& options);

  /// The store's weights, equal on all ranks, become those of a synchronisation. The momentum begins anew.
  void start(std::uint64_t seed, std::uint64_t steps);
  /// One of them became another value, on every rank.
  void set(const state::KeptTensor& tensor);
  /// Counts a step; synchronises where that is due, which waits for the step and for all ranks.
  void count_step();
  /// Likewise, at once; does nothing where no step was made since the last time.
  void synchronise();
  /// Whether the store's weights are those of the last synchronisation. Needs no other rank.
  bool is_synchronised() const { return !moved_; }
  /// Calls something with the weights of the last synchronisation in the place of this rank's own, which are put back
  /// after it, or only where it throws.
  enum class After : std::uint8_t { put_back, keep };
  void with_synchronised(const std::function<void()>& call, After after = After::put_back);
  /// Puts them back where that has failed. To be called before anything reads weights. Needs no other rank; throws
  /// Error where it fails again.
  void put_back();

  /// What the checkpoint of each rank becomes in one file, the same on all but for their notes: by the tensors' own
  /// names the weights and states of the last synchronisation, and rank 0's moments and counters; what other ranks have
  /// of their own under their names.
  Checkpoint::Contents of_all_ranks(const Checkpoint::Contents& own) const;
  /// What the names begin with by which a file has what is this rank's own, where it is not what other names have.
  static std::string own_prefix(const io::SafetensorsFile& file, const Ranks& ranks);
  /// A weight that is trained, or a state.
  struct Synchronised {
    state::KeptTensor tensor;
    std::vector<float> values;    ///< of the last synchronisation
    std::vector<float> momentum;  ///< of a weight
  };
  /// What is in a file, which has the tensors of this model. Throws Error, which names it, where one of those that
  /// of_all_ranks() adds is not what that makes.
  std::vector<Synchronised> read(const io::SafetensorsFile& file, const std::string& name) const;
  /// Goes on from that, after the store has gone on from the same file, which has this rank's own weights or not.
  void resume(std::vector<Synchronised> read, bool moved, std::uint64_t seed, std::uint64_t steps);
  /// Whether a file has this rank's own weights.
  bool has_own(const io::SafetensorsFile& file) const;

 private:
  std::vector<float> moved_by(const Synchronised& of) const;
  void write_synchronised();
  bool is_own(const state::KeptTensor& tensor) const;
  vk::Context& context() const;

  const run::Workspace& workspace_;
  const TrainerOptions& options_;
  Exchange& exchange_;
  std::vector<Synchronised> all_;
  std::array<std::vector<std::byte>, 4> own_;  ///< weights and states that with_synchronised() has set aside
  bool own_is_aside_ = false;
  std::uint64_t seed_ = 0;
  std::uint64_t steps_ = 0;
  bool moved_ = false;
};

}  // namespace halfstep::train
