#pragma once

#include "plan/program.h"

namespace halfstep::plan {

/// Fuses elementwise dispatches with those before and after them, so that intermediate values stay in registers:
///   - an elementwise operator and the one that reads its result become one kernel;
///   - an elementwise operator after a kernel that stores through an expression (a product, say) becomes its epilogue;
///   - an elementwise operator before a kernel that reads through an expression (a sum) is computed as that reads.
/// A value that others read too is stored on the way; one that nobody else reads is never stored. One that would have
/// been stored in a narrow type is rounded in its register: fused or not, the numbers are the same, unless they are
/// rounded at random, which is left to what stores them.
void fuse(Program& program, const Target& target);

}  // namespace halfstep::plan
