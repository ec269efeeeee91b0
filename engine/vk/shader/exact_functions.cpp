#include "vk/shader/exact_functions.h"

#include <algorithm>
#include <array>
#include <vector>

namespace halfstep::vk {
namespace {

using Arguments = std::span<const Number>;

constexpr double infinity_bits = 0x7f800000;
constexpr double nan_bits = 0x7fc00000;
constexpr double least_normal_bits = 0x00800000;
constexpr double sign_bit = 0x80000000U;

Number truth(const Number& holds) {
  return select(holds, holds.constant(Scalar::u32, 1), holds.constant(Scalar::u32, 0));
}
Number magnitude_of(const Number& a) {
  return bits_as(Scalar::u32, a) & 0x7fffffff;
}
Number sign_of(const Number& a) {
  return bits_as(Scalar::u32, a) & sign_bit;
}
Number at_least(const Number& a, const Number& b) {
  return select(a < b, b, a);
}
Number at_most(const Number& a, const Number& b) {
  return select(b < a, b, a);
}

/// 0 of its sign in place of 2^-126 and what is smaller. Devices that flush subnormal results differ from those that
/// keep them in what becomes 2^-126, as they round before or after that.
Number flushed(const Number& a) {
  const Number magnitude = magnitude_of(a);
  return bits_as(Scalar::f32,
                 select(magnitude.same(least_normal_bits) < magnitude, bits_as(Scalar::u32, a), sign_of(a)));
}
Number sum(const Number& a, const Number& b) {
  return flushed(a + b);
}
Number difference(const Number& a, const Number& b) {
  return flushed(a - b);
}
Number product(const Number& a, const Number& b) {
  return flushed(a * b);
}

/// a * b, one of which is 0, by integers.
Number product_with_zero(const Number& a, const Number& b) {
  const Number infinity = magnitude_of(a).same(infinity_bits);
  const Number finite = (magnitude_of(a) < infinity) & (magnitude_of(b) < infinity);
  return bits_as(Scalar::f32, select(finite, sign_of(a) ^ sign_of(b), infinity.same(nan_bits)));
}
/// a + b, one of which is 0: -0 only if both are.
Number sum_with_zero(const Number& a, const Number& b) {
  const Number other = select(magnitude_of(a) == 0, bits_as(Scalar::u32, b), bits_as(Scalar::u32, a));
  return bits_as(Scalar::f32, select((other & 0x7fffffff) == 0, sign_of(a) & sign_of(b), other));
}

/// A positive normal number as significand 2^(exponent - 150), the significand of 24 bits, the exponent signed.
struct Parts {
  Number significand;
  Number exponent;
};

Parts parts_of(const Number& magnitude) {
  return {(magnitude & 0x7fffff) | 0x800000, bits_as(Scalar::i32, magnitude >> 23)};
}

/// The bits of the number that is nearest to halves of 25 bits, the first a one, times 2^(exponent - 151), and more if
/// `sticky` is 1: to even where two are as near. Infinity where it is too large, 0 where it is flushed.
Number rounded(const Number& halves, const Number& sticky, const Number& exponent) {
  const Number whole = halves >> 1;
  const Number up = halves & (sticky | whole) & 1;
  const Number bits = (bits_as(Scalar::u32, exponent - 1) << 23) + whole + up;
  const Number small = (exponent < 1) | (bits == least_normal_bits);
  return select(small, halves.same(0), at_most(bits, halves.same(infinity_bits)));
}

/// a / b, rounded to nearest even: long division of the significands, eight bits at a time.
Number quotient(const Number& a, const Number& b) {
  const Number sign = sign_of(a) ^ sign_of(b);
  const Number ma = magnitude_of(a);
  const Number mb = magnitude_of(b);
  const Parts pa = parts_of(ma);
  const Parts pb = parts_of(mb);
  const Number less = pa.significand < pb.significand;
  Number rest = select(less, pa.significand << 1, pa.significand) - pb.significand;
  Number digits = rest.same(1);
  for (int i = 0; i < 3; ++i) {
    rest = rest << 8;
    const Number digit = rest / pb.significand;
    rest = rest - digit * pb.significand;
    digits = (digits << 8) | digit;
  }
  const Number exponent = pa.exponent - pb.exponent + 127 - select(less, pa.exponent.same(1), pa.exponent.same(0));
  Number result = rounded(digits, truth(rest != 0), exponent);
  const Number infinity = ma.same(infinity_bits);
  const Number a_zero = ma < least_normal_bits;
  const Number b_zero = mb < least_normal_bits;
  const Number a_infinite = ma == infinity;
  const Number b_infinite = mb == infinity;
  result = select(a_zero | b_infinite, ma.same(0), result);
  result = select(b_zero | a_infinite, infinity, result);
  const Number invalid = (infinity < ma) | (infinity < mb) | (a_zero & b_zero) | (a_infinite & b_infinite);
  return bits_as(Scalar::f32, select(invalid, ma.same(nan_bits), result | sign));
}

/// The square root, rounded to nearest even: two bits of the radicand for each bit of the root.
Number root(const Number& a) {
  const Number magnitude = magnitude_of(a);
  const Parts parts = parts_of(magnitude);
  const Number odd = (parts.exponent & 1) == 0;  // of the exponent without its bias
  const Number radicand = select(odd, parts.significand << 1, parts.significand);
  const Number even = parts.exponent - 127 - select(odd, parts.exponent.same(1), parts.exponent.same(0));
  Number rest = magnitude.same(0);
  Number digits = magnitude.same(0);
  for (int i = 0; i < 25; ++i) {
    Number next = rest << 2;
    if (i < 12) next = next | ((radicand >> (23 - 2 * i)) & 3);
    if (i == 12) next = next | ((radicand & 1) << 1);
    const Number trial = (digits << 2) | 1;
    const Number smaller = next < trial;
    rest = select(smaller, next, next - trial);
    digits = (digits << 1) | (truth(smaller) ^ digits.same(1));
  }
  Number result = rounded(digits, truth(rest != 0), (even >> 1) + 127);
  const Number zero = magnitude < least_normal_bits;
  result = select(zero, magnitude.same(0), result);
  result = select(magnitude == infinity_bits, magnitude, result);
  const Number invalid = (magnitude.same(infinity_bits) < magnitude) |
                         ((sign_of(a) != 0) & (magnitude.same(least_normal_bits - 1) < magnitude));
  return bits_as(Scalar::f32, select(invalid, magnitude.same(nan_bits), result | sign_of(a)));
}

/// v 2^n for n from -252 to 252, in two steps, so that both factors are normal numbers.
Number times_power_of_2(const Number& v, const Number& n) {
  const Number first = n >> 1;
  const auto power = [](const Number& exponent) { return bits_as(Scalar::f32, (exponent + 127) << 23); };
  return v * power(first) * power(n - first);
}

/// e^v, as accurate_exp() in plan/primitives.def. Of what it adds up nothing is as small as what is flushed, or it is
/// added to something larger.
Number exponential(const Number& v) {
  const Number x = at_most(at_least(v, v.same(-104)), v.same(89));
  const Number n = floor(x * 1.44269504 + 0.5);
  const Number r = x - n * 0.693359375 + n * 2.12194440e-4;
  const Number p = r * (r * (r * (r * 0.00139261759 + 0.00836317334) + 0.0416665561) + 0.166665778) + 0.5;
  const Number result = times_power_of_2(r * r * p + r + 1, convert(Scalar::i32, n));
  return select(v == v, flushed(result), v);
}

/// The natural logarithm, as accurate_log() in plan/primitives.def.
Number logarithm(const Number& v) {
  const Number bits = bits_as(Scalar::u32, v) + (0x3f800000 - 0x3f3504f3);
  const Number exponent = convert(Scalar::f32, bits_as(Scalar::i32, bits >> 23) - 127);
  const Number f = bits_as(Scalar::f32, (bits & 0x7fffff) + 0x3f3504f3) - 1;
  const Number s = quotient(f, f + 2);
  const Number z = s * s;
  const Number half_square = f * 0.5 * f;
  const Number series = z * (z * (z * (z * 0.233309612 + 0.285508037) + 0.400001228) + 0.666666687);
  const Number near_1 = f - (half_square - (s * (half_square + series) + exponent * -2.12194440e-4));
  Number result = exponent * 0.693359375 + near_1;
  const Number magnitude = magnitude_of(v);
  result = select(magnitude < infinity_bits, result, v);
  const Number infinity = bits_as(Scalar::f32, magnitude.same(infinity_bits));
  const Number zero = magnitude < least_normal_bits;
  result = select((sign_of(v) != 0) & (magnitude.same(0) < magnitude), bits_as(Scalar::f32, magnitude.same(nan_bits)),
                  result);
  return select(zero, 0 - infinity, result);
}

Number minimum(const Number& a, const Number& b) {
  return select(b < a, b, a);
}
Number maximum(const Number& a, const Number& b) {
  return select(a < b, b, a);
}

/// 1, -1, 0, or NaN.
Number sign(const Number& v) {
  const Number zero = v.same(0);
  return select(zero < v, v.same(1), select(v < zero, v.same(-1), select(v == zero, zero, v)));
}

/// The sum of the products of components, in their order.
Number dot(const Number& a, const Number& b) {
  Number total = product(a[0], b[0]);
  for (std::uint32_t i = 1; i < a.type().width; ++i) total = sum(total, product(a[i], b[i]));
  return total;
}

Number repeated(const Number& number, std::uint32_t times) {
  return vector_of(std::vector<Number>(times, number));
}

/// The two numbers of f16 in a word.
Number unpacked(const Number& word) {
  const std::array both{word & 0xffff, word >> 16};
  const Number bits = vector_of(both);
  const Number sign = (bits & 0x8000) << 16;
  const Number magnitude = bits & 0x7fff;
  const Number normal = (magnitude << 13) + bits.same(0x38000000);
  const Number subnormal = bits_as(Scalar::u32, convert(Scalar::f32, magnitude) * 0x1p-24);
  const Number special = (magnitude << 13) | infinity_bits;
  const Number finite = select(magnitude < 0x400, subnormal, normal);
  return bits_as(Scalar::f32, select(magnitude < 0x7c00, finite, special) | sign);
}

/// A word of two numbers rounded to f16, as half_bits_by_integers() in storage/f16.glsl does. Below 2^-14, where the
/// least of f16 is 2^-24, a sum with 0.5 is rounded to that.
Number packed(const Number& v) {
  const Number magnitude = magnitude_of(v);
  const Number normal = (magnitude - 0x37fff001 + ((magnitude >> 13) & 1)) >> 13;
  const Number subnormal = bits_as(Scalar::u32, bits_as(Scalar::f32, magnitude) + 0.5) - 0x3f000000;
  const Number rounded = select(magnitude < 0x38800000, subnormal, at_most(normal, normal.same(0x7c00)));
  const Number bits = select(magnitude.same(infinity_bits) < magnitude, magnitude.same(0x7e00), rounded);
  const Number halves = bits | ((bits_as(Scalar::u32, v) >> 16) & 0x8000);
  return halves[0] | (halves[1] << 16);
}

/// Opcodes of the SPIR-V specification, version 1.6, section 3.
constexpr std::array functions{
    ExactFunction{129, [](Arguments v) { return sum(v[0], v[1]); }},         // OpFAdd
    ExactFunction{131, [](Arguments v) { return difference(v[0], v[1]); }},  // OpFSub
    ExactFunction{133, [](Arguments v) { return product(v[0], v[1]); }},     // OpFMul
    ExactFunction{136, [](Arguments v) { return quotient(v[0], v[1]); }},    // OpFDiv
    ExactFunction{141,
                  [](Arguments v) { return difference(v[0], product(v[1], floor(quotient(v[0], v[1])))); }},  // OpFMod
    ExactFunction{142,
                  [](Arguments v) { return product(v[0], repeated(v[1], v[0].type().width)); }},  // OpVectorTimesScalar
    ExactFunction{148, [](Arguments v) { return dot(v[0], v[1]); }},                              // OpDot
};

constexpr std::array functions_with_zero{
    ExactFunction{129, [](Arguments v) { return sum_with_zero(v[0], v[1]); }},
    ExactFunction{133, [](Arguments v) { return product_with_zero(v[0], v[1]); }},
    ExactFunction{142, [](Arguments v) { return product_with_zero(v[0], repeated(v[1], v[0].type().width)); }},
};

/// Numbers of GLSL.std.450.
constexpr std::array functions_of_glsl{
    ExactFunction{6, [](Arguments v) { return sign(v[0]); }},
    ExactFunction{27, [](Arguments v) { return exponential(v[0]); }},
    ExactFunction{28, [](Arguments v) { return logarithm(v[0]); }},
    ExactFunction{31, [](Arguments v) { return root(v[0]); }},
    ExactFunction{32, [](Arguments v) { return quotient(v[0].same(1), root(v[0])); }},  // inversesqrt
    ExactFunction{37, [](Arguments v) { return minimum(v[0], v[1]); }},
    ExactFunction{40, [](Arguments v) { return maximum(v[0], v[1]); }},
    ExactFunction{43, [](Arguments v) { return minimum(maximum(v[0], v[1]), v[2]); }},                 // clamp
    ExactFunction{46, [](Arguments v) { return sum(product(v[0], 1 - v[2]), product(v[1], v[2])); }},  // mix
    ExactFunction{50, [](Arguments v) { return sum(product(v[0], v[1]), v[2]); }},                     // fma
    ExactFunction{58, [](Arguments v) { return packed(v[0]); }},                                       // packHalf2x16
    ExactFunction{62, [](Arguments v) { return unpacked(v[0]); }},                                     // unpackHalf2x16
};

const ExactFunction* find(std::span<const ExactFunction> among, std::uint32_t instruction) {
  const auto found = std::ranges::find(among, instruction, &ExactFunction::instruction);
  return found == among.end() ? nullptr : &*found;
}

}  // namespace

const ExactFunction* exact_function(std::uint32_t opcode) {
  return find(functions, opcode);
}

const ExactFunction* exact_function_with_zero(std::uint32_t opcode) {
  return find(functions_with_zero, opcode);
}

const ExactFunction* exact_function_of_glsl(std::uint32_t instruction) {
  return find(functions_of_glsl, instruction);
}

const ExactFunction& exact_load() {
  static constexpr ExactFunction load{61, [](Arguments v) { return flushed(v[0]); }};
  return load;
}

const ExactFunction& exact_bitcast() {
  static constexpr ExactFunction bitcast{124, [](Arguments v) { return flushed(bits_as(Scalar::f32, v[0])); }};
  return bitcast;
}

bool is_exact_in_glsl(std::uint32_t instruction) {
  // RoundEven, Trunc, FAbs, SAbs, SSign, Floor, Ceil; minima and maxima of integers; the highest and lowest bits.
  constexpr std::array exact{2U, 3U, 4U, 5U, 7U, 8U, 9U, 38U, 39U, 41U, 42U, 44U, 45U, 73U, 74U, 75U};
  return std::ranges::find(exact, instruction) != exact.end();
}

}  // namespace halfstep::vk
