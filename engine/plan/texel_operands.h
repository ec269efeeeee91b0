#pragma once

#include "plan/dispatch.h"

namespace halfstep::plan {

struct Program;
struct Target;

/// Marks the operands that may be bound as texel buffers, on a target that reads those faster: what is not narrow or
/// written, and bound as a whole. Blocks of parameters and their gradients are words of no dtype (u32): whether an
/// operand holds quads of f32, its kernel knows.
void mark_texel_operands(const Program& program, const Target& target, Dispatch& dispatch);

}  // namespace halfstep::plan
