#pragma once

#include "plan/dispatch.h"

namespace halfstep::plan {

struct Program;
struct Target;

/// Marks the operands that may be bound as texel buffers, on a target that reads those faster: f32 that is not written,
/// and bound as a whole.
void mark_texel_operands(const Program& program, const Target& target, Dispatch& dispatch);

}  // namespace halfstep::plan
