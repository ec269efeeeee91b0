#pragma once

#include "plan/program.h"

namespace halfstep::plan {

/// Spares casts between narrow types and f32: a dispatch whose kernel takes either (Dispatch::mixes), or reads through
/// an expression, reads what is cast to f32 as it was before; and what only a cast to a narrow type reads, such a
/// kernel stores so itself. The numbers are the same: a cast to f32 is exact, and one that rounds at random, or scales,
/// stays.
void spare_casts(Program& program);

/// Gives the kernel of a dispatch that mixes the variant for the narrow type that its operands have, where there is
/// one, and says which of them are f32; and any dispatch none of whose operands is narrow its Dispatch::of_f32.
void settle_variant(const Program& program, const Target& target, Dispatch& dispatch);

}  // namespace halfstep::plan
