#pragma once

#include <halfstep/halfstep.h>

#include <map>
#include <string>

#include "samples/common/command_line.h"
#include "samples/common/data.h"

namespace samples {

/// What the checkpoints of a run say of it beside what the trainer writes: its flags, and its training set's shape and
/// checksum.
std::map<std::string, std::string> run_notes(const CommonOptions& options, const Data& data);

/// Continues from the checkpoint that the flags name. Says on standard output, in one line, from where, and of what
/// differs whose value counts: the checkpoint's or the command line's. With --quiet it does so only where something
/// differs. Throws Error where the checkpoint is of another model, or of a data set with other shapes or classes.
/// `epoch_steps` is how many steps an epoch takes now.
halfstep::ResumePoint resume(halfstep::Trainer& trainer, const halfstep::Precision& precision, const Data& data,
                             std::int64_t epoch_steps, const CommonOptions& options);

}  // namespace samples
