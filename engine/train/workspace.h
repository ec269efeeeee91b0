#pragma once

#include <halfstep/trainer.h>

#include "run/runtime.h"

namespace halfstep {

struct Trainer::Workspace : run::Workspace {};

}  // namespace halfstep
