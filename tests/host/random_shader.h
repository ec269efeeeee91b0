#pragma once

#include <cstdint>
#include <string>

/// A shader of random statements on integers: variables, arrays, branches, loops with breaks and continues,
/// switches, calls and early returns; with the specialization constants 0 to 3, integers, and 4, a boolean. A variable
/// counts the rounds of all loops. Those whose control is Unroll alone can be written out.
/// It is valid, but for a few that continue a loop out of a switch that cannot be reached.
std::string random_shader(std::uint32_t seed);
