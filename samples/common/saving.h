#pragma once

#include <halfstep/halfstep.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <string>

#include "samples/common/command_line.h"

namespace samples {

/// Writes the checkpoints of a run on another thread. Training stops only while the values are copied off the device.
/// Where there is no file to save to, does nothing.
class Saver {
 public:
  /// `notes` go to the files' metadata.
  Saver(halfstep::Trainer& trainer, const CommonOptions& options, std::map<std::string, std::string> notes);
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  /// Waits for the file being written.
  ~Saver();

  /// After `step` steps: saves where --save-every says so. Skipped while the save before is still being written.
  void after_step(std::int64_t step);
  /// Saves, once the save before is written.
  void save();
  /// Waits for the last save. Throws its Error where it failed. Of earlier saves that failed, the first of a run of
  /// them was a line on standard error.
  void finish();

 private:
  bool due(std::int64_t step);
  void begin();
  /// Waits for the save under way, and warns where it failed and the one before did not.
  void settle();

  halfstep::Trainer& trainer_;
  const CommonOptions& options_;
  std::map<std::string, std::string> notes_;
  std::future<void> writing_;
  bool failing_ = false;  ///< whether the last save that was waited for failed
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// One line on standard error: something could not be written, and training goes on.
void warn_not_saved(const halfstep::Error& error);

}  // namespace samples
