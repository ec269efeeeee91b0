#pragma once

#include "plan/program.h"
#include "plan/target.h"

namespace bench {

/// A dispatch of every variant that reads buffers only, with the constants that its source gives, and of products one
/// for each kernel that the target has. Those that only software drivers take are left out, and those for matrix units
/// where there are none: a compiler may crash on them.
halfstep::plan::Program every_variant(const halfstep::plan::Target& target);

}  // namespace bench
