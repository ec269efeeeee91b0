#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vk/optimize/specialized.h"

namespace halfstep::vk {

/// The shader with arithmetic of f32 that gives the same bits on every device that rounds sums and products to nearest
/// even. Every operation on floats that a device may round or contract in a way of its own calls a function of sums,
/// products and integers, which is appended to the module: none is contracted, and what is not above 2^-126 becomes 0,
/// since some devices keep subnormal numbers and some do not: in results, in constants, and in what is loaded from
/// buffers and push constants. Quotients and roots are rounded to nearest even; an exponential or logarithm is off by
/// two units in the last place at the most. Throws Error that names `shader` where it computes in other floats, or with
/// an instruction that has no such function.
std::vector<std::uint32_t> with_exact_arithmetic(std::span<const std::uint32_t> words, std::string_view shader);

/// The specialization constants of a shader, given by their numbers, with 0 for those of f32 that are not above 2^-126.
Constants with_exact_constants(std::span<const std::uint32_t> words, Constants constants);

/// The shader with only unpackHalf2x16() computed so, by integers: for drivers that cannot
/// (Capabilities::unpacks_halves).
std::vector<std::uint32_t> with_exact_unpacking(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
