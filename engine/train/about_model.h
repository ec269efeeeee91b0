#pragma once

#include <halfstep/trainer.h>

#include "io/safetensors.h"

namespace halfstep::train {

/// What the metadata of a checkpoint says of the model and what it is fed, each where it is known: "model", its name;
/// "classes", a JSON list of names; "input", "32x32x3"; "mean" and "deviation", numbers with commas between them.
io::Metadata about_model(const TrainerOptions& options);

}  // namespace halfstep::train
