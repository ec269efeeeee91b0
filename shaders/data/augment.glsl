// Random augmentation of a training image; see halfstep::Augmentation. Always draws twelve random words per index in a
// batch and step, whatever is enabled, so that enabling one augmentation does not change the draws of another.
#ifndef HALFSTEP_AUGMENT
#define HALFSTEP_AUGMENT

#include "common/rng.glsl"

struct Draws {
  uvec4 place;   // crop's row and column, flip, cutout's row
  uvec4 colour;  // cutout's column, brightness, contrast, saturation
  uvec4 more;    // hue
};

Draws draws_of(uint b) {
  uvec2 seed = uvec2(state.seed_low, state.seed_high);
  return Draws(quad_noise(seed, state.attempted, STREAM_AUGMENTATION, 2u * b),
               quad_noise(seed, state.attempted, STREAM_AUGMENTATION, 2u * b + 1u),
               quad_noise(seed, state.attempted, STREAM_AUGMENTATION, 0x80000000u + b));
}

// A random integer below `count`.
uint draw_below(uint word, uint count) {
  uint high, low;
  umulExtended(word, count, high, low);
  return high;
}

// A factor from 1 - range to 1 + range.
float draw_factor(uint word, float range) { return fma(range, fma(float(word >> 8), 1.0 / 8388608.0, -1.0), 1.0); }

// The square is centred on any pixel; the part outside the image is clipped.
bool is_cut_out(Draws draws, uint y, uint x) {
  ivec2 centre = ivec2(draw_below(draws.colour.x, width), draw_below(draws.place.w, height));
  ivec2 from_corner = ivec2(x, y) - (centre - int(cutout) / 2);
  return all(greaterThanEqual(from_corner, ivec2(0))) && all(lessThan(from_corner, ivec2(cutout)));
}

// The source of pixel {y, x}, as {x, y}; it may be in the padding.
ivec2 cropped_and_flipped(Draws draws, uint y, uint x) {
  bool mirrored = (draws.place.z >> 8) < flip;
  uint column = mirrored ? width - 1u - x : x;
  uint choices = 2u * crop_padding + 1u;
  ivec2 corner = ivec2(draw_below(draws.place.y, choices), draw_below(draws.place.x, choices)) - int(crop_padding);
  return ivec2(column, y) + corner;
}

// A pixel with rotated hue: its largest component and the range of its components do not change.
vec3 turned(vec3 rgb, float turn) {
  float largest = max(max(rgb.r, rgb.g), rgb.b);
  float spread = largest - min(min(rgb.r, rgb.g), rgb.b);
  if (spread <= 0.0) return rgb;
  float sextant = (rgb.r - rgb.g) / spread + 4.0;
  if (largest == rgb.g) sextant = (rgb.b - rgb.r) / spread + 2.0;
  if (largest == rgb.r) sextant = (rgb.g - rgb.b) / spread;
  vec3 k = mod(vec3(5.0, 3.0, 1.0) + sextant + 6.0 * turn, 6.0);
  return largest - spread * clamp(min(k, 4.0 - k), 0.0, 1.0);
}

// Changes brightness, saturation, hue, then contrast, of a pixel in the range 0 to 255.
vec4 jittered(Draws draws, vec4 bytes) {
  if (colour == vec4(0.0)) return bytes;
  vec4 v = bytes * draw_factor(draws.colour.y, colour.x);
  // Luma of ITU-R BT.601.
  if (colour.z > 0.0) v = mix(vec4(dot(v.rgb, vec3(0.299, 0.587, 0.114))), v, draw_factor(draws.colour.w, colour.z));
  if (colour.w > 0.0) v.rgb = turned(v.rgb, draw_factor(draws.more.x, colour.w) - 1.0);
  vec4 mean = -offset / factor;
  v = mix(mean, v, draw_factor(draws.colour.z, colour.y));
  return clamp(v, 0.0, 255.0);
}

#endif
