#pragma once

#include <halfstep/checkpoint.h>
#include <halfstep/optimizer.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "state/store.h"
#include "step/step_program.h"
#include "train/batches.h"
#include "train/checkpoint_contents.h"

namespace halfstep::train {

/// Reads and writes the files of a training: checkpoints, and weights alone. All steps must have finished.
class Checkpoints {
 public:
  /// `about` is what files say of the model and what it is fed. All that is referred to must outlive this. Throws Error
  /// where two tensors would have one name in files, or a name is none that files can have, or one of Halfstep's own.
  Checkpoints(state::ParameterStore& store, const TrainerOptions& options, const Batches& batches, io::Metadata about);

  /// See Trainer::checkpoint.
  Checkpoint take(const std::map<std::string, std::string>& notes) const;
  /// See Trainer::save_weights.
  Checkpoint take_weights(Weights weights) const;
  /// Where a training goes on from a file.
  struct Resumed {
    state::RunState state;
    std::int64_t drawn = 0;  ///< batches
  };
  /// See Trainer::load: takes the store's part of a file that errors call `name`. What the file has under names that
  /// begin with `prefix` is taken in the place of what other names have.
  Resumed load(const io::SafetensorsFile& file, const std::string& name, const std::string& prefix = {});
  /// See Trainer::load_weights.
  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options);

 private:
  Checkpoint::Contents contents(const std::vector<state::KeptTensor>& tensors, const state::StepState& state) const;
  io::Metadata metadata(const state::StepState& state) const;
  /// A file that errors name, of which a part is preferred.
  struct Source {
    const io::SafetensorsFile& file;
    std::string name;
    std::string prefix;

    /// `name` with the prefix, where the file has that.
    std::string preferred(std::string_view tensor) const;
  };
  state::RunState state_from(const Source& source) const;
  std::vector<state::OptimizerState> optimizers_from(const Source& source) const;
  std::vector<float> scales_from(const Source& source) const;
  /// What a file has of the copies of a weight that operators read.
  struct Copy {
    const state::ParameterEntry* of;
    std::vector<float> values;
  };
  std::vector<Copy> copies_from(const Source& source, const std::vector<state::KeptTensor>& tensors,
                                const std::vector<std::vector<float>>& values) const;

  state::ParameterStore& store_;
  const TrainerOptions& options_;
  const Batches& batches_;
  io::Metadata about_;
};

/// The attempted steps that a state counts.
inline std::uint64_t attempted(const state::StepState& state) {
  return state.attempted[0] | static_cast<std::uint64_t>(state.attempted[1]) << 32;
}

}  // namespace halfstep::train
