#pragma once

#include <halfstep/inspector.h>

#include "plan/program.h"

namespace halfstep::train {

/// A program as a graph of its dispatches; see Inspector::planned.
PlannedStep planned(const plan::Program& program);

}  // namespace halfstep::train
