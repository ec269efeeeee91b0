#version 440
#extension GL_GOOGLE_include_directive : require
#include "norm/moments_merge.glsl"

layout(std430, binding = 1) writeonly buffer OfSlices { vec4 of_slices[]; };

void main() {
  OwnSlice own = own_slice();
  Moments made = merged_parts(own);
  if (own.is_there && lane() == 0u) {
    uint plane = partial_plane_of(own.slice);
    of_slices[plane] = made.mean;
    of_slices[plane + QUADS] = made.squares;
  }
}
