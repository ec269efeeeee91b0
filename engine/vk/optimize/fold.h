#pragma once

#include "vk/optimize/module.h"

namespace halfstep::vk::ir {

/// The constant that the instruction computes from constants, 0 if that is not known. Only what is exact on every
/// device: integers of 32 bits, booleans, comparisons, and bits that are moved. Arithmetic on floats is left to the
/// device.
Id folded(Module& module, const Instruction& i);

/// What the instruction gives whatever its other operands are, such as x of x * 1; 0 if there is nothing simpler. It
/// may be a constant that is added to the module.
Id simpler(Module& module, const Instruction& i);

/// The constituent of a constant; 0 if there is none.
Id constituent(Module& module, Id constant, std::uint32_t index);

}  // namespace halfstep::vk::ir
