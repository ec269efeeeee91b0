#version 450
//! B = row col
//! STORAGE = f32 packed
// Lays B, {segments, k, columns} (row) or {segments, columns, k} (col), out for gemm_uniform.glsl: panels of 32 columns,
// in a panel all k of all segments, each segment filled up with zeros to whole quads; of a k first columns 0, 4, ... 28,
// then 1, 5, ... 29, and so on. Each invocation writes four quads.
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push {
  int count;     // of invocations
  int columns;
  int k;         // of a segment
  int segments;
  int panels;    // of a batch
  int pitch;     // quads of a row of B
  int b_batch;   // quads from one batch to the next
};

layout(std430, binding = 0) readonly buffer B { QUAD b[]; };
layout(std430, binding = 1) writeonly buffer Panels { vec4 to[]; };

// Quads of k in a segment.
int k_quads() { return (k + 3) >> 2; }

#if defined(B_row)
// One k and 16 columns.
void pack(int base, int panel, int k_place, int half_panel) {
  int segment = k_place / (k_quads() * 4);
  int kk = k_place - segment * k_quads() * 4;
  int quad = panel * 8 + half_panel * 4;
  mat4 v = mat4(0.0);
  for (int i = 0; i < 4; i++) {
    if (kk < k && (quad + i) * 4 < columns) v[i] = from_quad(b[base + (segment * k + kk) * pitch + quad + i]);
  }
  v = transpose(v);
  int at = int(linear_invocation()) / 2 * 8 + half_panel;
  for (int j = 0; j < 4; j++) to[at + 2 * j] = v[j];
}
#else
// Four k and four columns.
void pack(int base, int panel, int k_quad, int place) {
  int segment = k_quad / k_quads();
  int kq = k_quad - segment * k_quads();
  mat4 v = mat4(0.0);
  for (int e = 0; e < 4; e++) {
    int column = panel * 32 + 16 * (place % 2) + 4 * e + place / 2;
    if (column < columns) v[e] = from_quad(b[base + (segment * columns + column) * pitch + kq]);
  }
  v = transpose(v);
  int at = int(linear_invocation()) / 8 * 32 + place;
  for (int kk = 0; kk < 4; kk++) to[at + 8 * kk] = v[kk];
}
#endif

void main() {
  int at = int(linear_invocation());
  if (at < count) {
#if defined(B_row)
    const int parts = 2;
    int k_places = segments * k_quads() * 4;
#else
    const int parts = 8;
    int k_places = segments * k_quads();
#endif
    int part = at % parts;
    int rest = at / parts;
    int panel = rest / k_places;
    int batch = panel / panels;
    pack(batch * b_batch, panel - batch * panels, rest - panel * k_places, part);
  }
}
