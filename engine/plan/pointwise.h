#pragma once

#include <vector>

#include "plan/program.h"

namespace halfstep::plan {

/// A dispatch of pointwise.comp: the expression's value for every quad of its layout. Operand 0 is the result, the
/// expression's slots follow.
Dispatch pointwise(Expression expression, std::vector<Operand> operands);

/// Gives a dispatch with an expression what follows from it, once it has been fused with as much as can be: the
/// specialization constants and, for pointwise.comp, variant, push constants and workgroups.
void specialize(const Program& program, const Target& target, Dispatch& dispatch);

}  // namespace halfstep::plan
