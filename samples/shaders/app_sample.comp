#version 450
#extension GL_GOOGLE_include_directive : require
// Positions, and the colours that the picture has there.
#include "app_scene.glsl"

uint hash(uint x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
float uniform_of(uint x) { return float(hash(x) >> 8) / 16777216.0; }

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= count) return;
  uint key = hash(choice * 0x9e3779b9u + 2u * i);
  vec2 drawn = vec2(uniform_of(key), uniform_of(key + 1u)) * vec2(1.0, float(height) / float(width));
  vec2 p = choice == 0u ? centre_of(i) : drawn;
  vec3 colour = scene(p);
  for (uint k = 0u; k < 2u; ++k) shared_numbers[positions + 2u * i + k] = p[k];
  for (uint k = 0u; k < 3u; ++k) shared_numbers[colours + 3u * i + k] = colour[k];
}
