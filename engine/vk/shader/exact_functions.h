#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "vk/shader/spirv_functions.h"

namespace halfstep::vk {

/// A function of f32 whose result is the same on all devices, written for any width of its arguments.
struct ExactFunction {
  std::uint32_t instruction;
  Number (*body)(std::span<const Number>);
};

/// In place of an instruction; null where it is exact, or has no such function.
const ExactFunction* exact_function(std::uint32_t opcode);
/// The same where an operand is a constant 0: lavapipe takes x * 0 for 0 and x + 0 for x then, whatever x is. Null
/// where that makes no difference.
const ExactFunction* exact_function_with_zero(std::uint32_t opcode);
/// The same for an instruction of GLSL.std.450.
const ExactFunction* exact_function_of_glsl(std::uint32_t instruction);
/// For f32 that was loaded from a buffer, and for words that become f32 (OpBitcast): 0 in place of subnormal numbers.
const ExactFunction& exact_load();
const ExactFunction& exact_bitcast();
/// Whether an instruction of GLSL.std.450 gives the same bits everywhere: it works on integers, or its result is a
/// float that can be told without rounding.
bool is_exact_in_glsl(std::uint32_t instruction);

}  // namespace halfstep::vk
