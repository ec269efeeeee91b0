// For each coordinate x, from octave to octave: sin(2^octave pi x), cos(2^octave pi x).
const uint COORDINATE_FEATURES = 2u * COUNT;

// {sin, cos} of half_turns pi. The part of a turn is exact; a polynomial's error is below a unit in the last place of 1.
vec2 sine_and_cosine(float half_turns) {
  float turn = half_turns - 2.0 * floor(half_turns * 0.5 + 0.5);
  float quarter = floor(turn * 2.0 + 0.5);
  float angle = (turn - quarter * 0.5) * 3.14159265;  // from -pi / 4 to pi / 4
  float s = angle * angle;
  float sine = angle + angle * s * (s * (s * (s * (1.0 / 362880.0) - 1.0 / 5040.0) + 1.0 / 120.0) - 1.0 / 6.0);
  float cosine = 1.0 + s * (s * (s * (s * (1.0 / 40320.0) - 1.0 / 720.0) + 1.0 / 24.0) - 0.5);
  uint quarters = uint(int(quarter)) & 3u;
  vec2 v = (quarters & 1u) == 0u ? vec2(sine, cosine) : vec2(cosine, -sine);
  return quarters >= 2u ? -v : v;
}

float octave_of(uint column) { return uintBitsToFloat((127u + column % COORDINATE_FEATURES / 2u) << 23u); }

float feature(vec4 position, uint column) {
  vec2 v = sine_and_cosine(position[column / COORDINATE_FEATURES] * octave_of(column));
  return (column & 1u) == 0u ? v.x : v.y;
}

vec4 slope(vec4 position, uint column) {
  uint coordinate = column / COORDINATE_FEATURES;
  float octave = octave_of(column);
  vec2 v = sine_and_cosine(position[coordinate] * octave) * (octave * 3.14159265);
  return mix(vec4(0.0), vec4((column & 1u) == 0u ? v.y : -v.x), equal(uvec4(coordinate), uvec4(0u, 1u, 2u, 3u)));
}
