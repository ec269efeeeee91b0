#pragma once

#include <vector>

#include "plan/program.h"

namespace halfstep::plan {

/// A dispatch of pointwise.comp: evaluates the expression for every quad of its layout. Operand 0 is the result, the
/// expression's arguments follow.
Dispatch pointwise(Expression expression, std::vector<Operand> operands);

/// Completes a dispatch with an expression after fusion: sets the specialization constants and, for pointwise.comp,
/// variant, push constants and workgroups.
void specialize(const Program& program, const Target& target, Dispatch& dispatch);

}  // namespace halfstep::plan
