// The picture of embed_in_app, and what its kernels have in common: x from 0 to 1, y from 0 at the top to the picture's
// height by its width.
layout(local_size_x = 64) in;

layout(std430, binding = 0) buffer Shared { float shared_numbers[]; };
layout(std430, binding = 1) writeonly buffer Picture { uint pixels[]; };
layout(push_constant) uniform Push {
  uint count;      // of invocations
  uint width;      // of the picture
  uint height;
  uint choice;     // of app_sample: the seed, or 0 for the centres of pixels; of app_show: the column of the divider
  uint positions;  // the first of the shared numbers
  uint colours;
};

const float horizon = 0.33;

vec2 centre_of(uint pixel) { return (vec2(pixel % width, pixel / width) + 0.5) / float(width); }

float ridge(float x) {
  return horizon - 0.045 - 0.03 * sin(9.0 * x + 0.6) - 0.018 * sin(23.0 * x) - 0.008 * abs(sin(61.0 * x + 0.3));
}

vec3 sky(vec2 p) {
  vec3 colour = mix(vec3(0.07, 0.03, 0.2), vec3(0.93, 0.33, 0.42), pow(p.y / horizon, 1.6));
  float away = distance(p, vec2(0.5, 0.21));
  colour += vec3(0.5, 0.2, 0.25) * exp(-9.0 * away);
  bool slit = p.y > 0.19 && fract(40.0 * (p.y - 0.19)) < 2.8 * (p.y - 0.19);
  if (away < 0.14 && !slit) colour = mix(vec3(1.0, 0.86, 0.35), vec3(0.98, 0.25, 0.5), (p.y - 0.07) / 0.28);
  return colour;
}

vec3 ground(vec2 p) {
  float depth = 0.05 / max(p.y - horizon, 0.004);
  vec2 place = vec2((p.x - 0.5) * depth * 16.0, 4.0 * depth);
  vec2 off = abs(fract(place) - 0.5);
  float line = max(smoothstep(0.43, 0.49, off.x), smoothstep(0.43, 0.49, off.y));
  float near = clamp(7.0 * (p.y - horizon), 0.0, 1.0);
  vec3 floor_colour = mix(vec3(0.35, 0.1, 0.35), vec3(0.05, 0.02, 0.13), near);
  return mix(floor_colour, vec3(0.2, 0.95, 1.0), line * near);
}

vec3 scene(vec2 p) {
  if (p.y > horizon) return ground(p);
  float height_of_ridge = ridge(p.x);
  if (p.y < height_of_ridge) return clamp(sky(p), 0.0, 1.0);
  return mix(vec3(0.26, 0.07, 0.32), vec3(0.1, 0.03, 0.18), (p.y - height_of_ridge) / 0.08);
}
