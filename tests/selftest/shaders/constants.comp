#version 450
// Specialization constants of every kind, as numbers, an array's size and a loop's bound; then the push constants.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint NUMBER = 5;
layout(constant_id = 2) const int NEGATIVE = -5;
layout(constant_id = 3) const float REAL = 0.5;
layout(constant_id = 4) const bool SWITCH = false;
layout(constant_id = 5) const uint LENGTH = 3;
layout(constant_id = 6) const uint UNSET = 77;
const uint COMPUTED = NUMBER * 3u + LENGTH;
layout(set = 0, binding = 0) writeonly buffer Result {
  uint result[];
};
layout(push_constant) uniform Push {
  uvec4 pushed[8];
};

void main() {
  if (gl_GlobalInvocationID.x != 0u) return;
  uint kept[LENGTH];
  for (uint i = 0u; i < LENGTH; ++i) kept[i] = i * i;
  uint sum = 0u;
  for (uint i = 0u; i < LENGTH; ++i) sum += kept[LENGTH - 1u - i] * (i + 1u);
  result[0] = NUMBER;
  result[1] = uint(NEGATIVE);
  result[2] = floatBitsToUint(REAL);
  result[3] = SWITCH ? 1u : 0u;
  result[4] = sum;
  result[5] = UNSET;
  result[6] = COMPUTED;
  result[7] = gl_WorkGroupSize.x;
  for (uint i = 0u; i < 32u; ++i) result[8u + i] = pushed[i / 4u][i % 4u];
}
