#version 450
#extension GL_GOOGLE_include_directive : require
// The frame: left of the divider the picture, right of it what the network makes of each pixel's position. A divider at 0
// is not drawn.
#include "app_scene.glsl"

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= count) return;
  uint column = i % width;
  vec3 colour = scene(centre_of(i));
  if (column > choice || choice == 0u) {
    for (uint k = 0u; k < 3u; ++k) colour[k] = shared_numbers[colours + 3u * i + k];
  }
  if (column == choice && choice > 0u) colour = vec3(1.0);
  uvec3 bytes = uvec3(round(255.0 * clamp(colour, 0.0, 1.0)));
  pixels[i] = bytes.r | bytes.g << 8 | bytes.b << 16 | 255u << 24;
}
