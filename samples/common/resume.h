#pragma once

#include <halfstep/halfstep.h>

#include <map>
#include <optional>
#include <string>

#include "samples/common/command_line.h"
#include "samples/common/data.h"
#include "samples/common/report.h"

namespace samples {

/// Of all values of a set.
std::string checksum(const halfstep::Dataset& set);

/// The metadata that a run adds to its checkpoints: its flags, and its training set's shape and checksum.
std::map<std::string, std::string> run_notes(const CommonOptions& options, const Data& data);

/// The key of the note that a checkpoint has while a test is due: one that was not begun, or that was stopped. Of the
/// part of the training before that test, the note has the loss, the seconds and the speed.
inline constexpr const char* untested_key = "untested";
std::string untested_note(const EpochResult& result);

/// Where a checkpoint continues.
struct Resumed {
  halfstep::ResumePoint point;
  std::map<std::string, std::string> notes;
  std::optional<EpochResult> untested;  ///< what is to be tested before any further step
};

/// Continues from the checkpoint that the flags name. Prints one line on standard output with the position and, for
/// every setting that differs, whether the checkpoint's or the command line's value is used. With --quiet, prints it
/// only if something differs. Throws Error if the checkpoint is of another model, or of a data set with other shapes or
/// classes. `epoch_steps` is the current number of steps per epoch.
Resumed resume(halfstep::Trainer& trainer, const halfstep::Precision& precision, const Data& data,
               std::int64_t epoch_steps, const CommonOptions& options);

}  // namespace samples
