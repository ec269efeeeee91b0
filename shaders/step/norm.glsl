// The sum of squares of numbers of any magnitude, apart for small, medium and large ones: what is small is squared
// times a power of 2, and what is large divided by one, so that no square underflows or overflows; Blue 1978.
#ifndef HALFSTEP_NORM
#define HALFSTEP_NORM

struct Squares {
  vec4 small;  // of numbers below 2^-50, times GROWN each
  vec4 medium;
  vec4 large;  // of numbers from 2^48 on, infinities and NaN, times SHRUNK each
};
const Squares NO_SQUARES = Squares(vec4(0.0), vec4(0.0), vec4(0.0));
const uint SMALL_NUMBERS = 0x26800000u;  // below 2^-50
const uint LARGE_NUMBERS = 0x57800000u;  // from 2^48 on
const float GROWN = 79228162514264337593543950336.0;  // 2^96; engine/step/statistics.cpp has the same two
const float SHRUNK = 8.271806125530277e-25;           // 2^-80

void add_squares(inout Squares sums, vec4 v) {
  uvec4 magnitude = floatBitsToUint(v) & 0x7fffffffu;
  bvec4 is_small = lessThan(magnitude, uvec4(SMALL_NUMBERS));
  bvec4 is_large = greaterThanEqual(magnitude, uvec4(LARGE_NUMBERS));
  vec4 scaled = v * mix(mix(vec4(1.0), vec4(GROWN), is_small), vec4(SHRUNK), is_large);
  vec4 square = scaled * scaled;
  sums.small += mix(vec4(0.0), square, is_small);
  sums.medium += mix(mix(square, vec4(0.0), is_small), vec4(0.0), is_large);
  sums.large += mix(vec4(0.0), square, is_large);
}

// The sums over a quad: small, medium, large.
vec3 over_quad(Squares sums) {
  return vec3(dot(sums.small, vec4(1.0)), dot(sums.medium, vec4(1.0)), dot(sums.large, vec4(1.0)));
}

vec3 squares_of(float v) {
  Squares sums = NO_SQUARES;
  add_squares(sums, vec4(v, 0.0, 0.0, 0.0));
  return vec3(sums.small.x, sums.medium.x, sums.large.x);
}

// The root of three sums: small, medium, large.
float norm_of(vec3 sums) {
  if (floatBitsToUint(sums.z) != 0u) return sqrt(sums.z + sums.y * SHRUNK * SHRUNK) / SHRUNK;
  if (floatBitsToUint(sums.y) != 0u) return sqrt(sums.y + sums.x / GROWN / GROWN);
  return sqrt(sums.x) / GROWN;
}

#endif
