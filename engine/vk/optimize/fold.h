#pragma once

#include <cstdint>
#include <optional>

#include "vk/optimize/module.h"

namespace halfstep::vk::ir {

/// The constant that the instruction computes from constants, 0 if that is not known. Only what is exact on every
/// device: integers of 32 bits, booleans, comparisons, and bits that are moved. Arithmetic on floats is left to the
/// device.
Id folded(Module& module, const Instruction& i);

/// What an instruction on two integers of 32 bits or two booleans gives; nothing if it is another, or where its result
/// is not defined: a quotient by 0, a shift by 32 or more.
std::optional<std::uint32_t> integer_result(std::uint32_t opcode, std::uint32_t a, std::uint32_t b);

/// What the instruction gives whatever its other operands are, such as x of x * 1; 0 if there is nothing simpler. It
/// may be a constant that is added to the module.
Id simpler(Module& module, const Instruction& i);

/// The constituent of a constant; 0 if there is none.
Id constituent(Module& module, Id constant, std::uint32_t index);

}  // namespace halfstep::vk::ir
