#pragma once

#include <halfstep/halfstep.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "samples/common/command_line.h"

namespace samples {

/// What a model's folder has beside the checkpoint, if anything.
struct Beside {
  /// Writes what never changes, before each checkpoint and on the thread that writes it: so it replaces the files of an
  /// earlier run not before there is a checkpoint to go with it. Only the first rank calls it.
  std::function<void()> description{};
  /// Writes the weights for other programs, when the checkpoint of the run's first save, or of Saver::save(), is
  /// written.
  std::function<void()> weights{};
};

/// Writes the checkpoints of a run on another thread. Training stops only while the values are copied from the device,
/// and where weights follow the checkpoint. Does nothing if there is no file to save to.
class Saver {
 public:
  /// `notes` are added to the files' metadata. Of several ranks, every one calls the functions, and the first one
  /// writes.
  Saver(halfstep::Trainer& trainer, const CommonOptions& options, std::map<std::string, std::string> notes,
        Beside beside);
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  /// Waits for the file being written.
  ~Saver();

  /// Has the files' metadata say this too, from the next save on.
  void note(const std::string& key, std::string text) { notes_[key] = std::move(text); }
  /// Has it say so no more.
  void forget(const std::string& key) { notes_.erase(key); }
  /// How many steps, one at least, can follow `step` others before --save-every, counted in steps, is due.
  std::int64_t steps_to_next(std::int64_t step) const;
  /// After `step` steps: saves if --save-every is due. Skipped while the previous save is still being written.
  void after_step(std::int64_t step);
  /// Saves after the previous save has been written.
  void save();
  /// Waits for the last save. Throws its Error if it failed, or the weights beside it did. Earlier failures printed one
  /// line on standard error per sequence of consecutive failures.
  void finish();

 private:
  bool due(std::int64_t step);
  bool is_writing() const;
  void begin();
  void write_weights();
  /// Waits for the current save, and warns if it failed and the one before did not.
  void settle();

  halfstep::Trainer& trainer_;
  const CommonOptions& options_;
  bool saves_;  ///< any rank does
  std::map<std::string, std::string> notes_;
  Beside beside_;
  bool has_weights_ = false;                        ///< of this run, beside the checkpoint, unless they failed
  std::optional<halfstep::Error> weights_failure_;  ///< why the last ones could not be written
  std::future<void> writing_;
  bool failing_ = false;  ///< whether the last finished save failed
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Prints one line on standard error: a file could not be written, and training continues.
void warn_not_saved(const halfstep::Error& error);

}  // namespace samples
