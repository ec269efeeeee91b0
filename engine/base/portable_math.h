#pragma once

/// Functions by sums, products and quotients of double alone, which IEEE 754 defines to the last bit, so that initial
/// weights, schedules, tables and drawn tokens are the same with every C library and processor: those libraries' own
/// functions differ in their last bits, glibc's even between processors with and without fused products. Off by at most
/// three units in the last place of double.
namespace halfstep::portable {

/// The natural logarithm of x > 0.
double log(double x);

double exp(double x);

/// base^exponent; a base below 0 takes whole exponents only. A whole exponent is multiplied out, which costs the last
/// place up to half a unit for each factor.
double pow(double base, double exponent);

/// The cosine of 2 pi turns, where |turns| <= 2^50. Exact at quarters of a turn.
double cos_of_turns(double turns);

/// The sine of 2 pi turns, likewise.
double sin_of_turns(double turns);

}  // namespace halfstep::portable
