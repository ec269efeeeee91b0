#pragma once

#include <cstdint>
#include <string>

/// A valid shader of random statements on integers: variables, arrays, branches, loops with breaks and continues,
/// switches, calls and early returns; with the specialization constants 0 to 3, integers, and 4, a boolean.
std::string random_shader(std::uint32_t seed);
