// Where the operands of a broadcasting kernel lie. The host merges axes that are walked alike, so that AXES is small:
// 0 where all tensors have one shape. Extents and strides count quads, the outermost axis first.
layout(constant_id = 1) const int AXES = 0;
// An operand with one column is spread over those of the result.
layout(constant_id = 2) const bool SPREAD_A = false;
layout(constant_id = 3) const bool SPREAD_B = false;
layout(constant_id = 4) const bool CLEAR_PAD = false;

layout(push_constant) uniform Push {
  uint quads;
  uint quads_per_row;
  uint columns;
  float factor;
  uint extents[8];
  uint strides_a[8];
  uint strides_b[8];
};

// The quads of a and b that quad `i` of the result is made from.
uvec2 operands_of(uint i) {
  if (AXES == 0) return uvec2(i);
  uvec2 at = uvec2(0u);
  for (int axis = AXES - 1; axis > 0; axis--) {
    at += i % extents[axis] * uvec2(strides_a[axis], strides_b[axis]);
    i /= extents[axis];
  }
  return at + i * uvec2(strides_a[0], strides_b[0]);
}

vec4 clear_pad(vec4 v, uint i) { return CLEAR_PAD ? keep_columns(v, i % quads_per_row * 4u, columns) : v; }
