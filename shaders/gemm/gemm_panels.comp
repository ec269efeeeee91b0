#version 450
//! B = row col
//! STORAGE = f32 words
// Lays B, {segments, k, columns} (row) or {segments, columns, k} (col), out for gemm_uniform.glsl, behind as many zeros as
// a segment has: panels of columns, in a panel all k of all segments, each segment filled up with zeros to
// whole quads.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const int PANEL_QUADS = 8;  // of columns: LANES * COLUMNS / 4 of gemm_uniform.glsl

layout(push_constant) uniform Push {
  int count;     // number of invocations
  int columns;
  int k;         // of a segment
  int segments;
  int panels;    // per batch
  int pitch;     // quads of a row of B
  int b_batch;   // quads between batches
};

layout(std430, binding = 0) readonly buffer B { QUAD b[]; };
layout(std430, binding = 1) writeonly buffer Panels { vec4 to[]; };

// Quads of k in a segment.
int k_quads() { return (k + 3) >> 2; }

// The first quad of the panels.
int first() { return (k_quads() + 3) / 4 * 4; }

#if defined(B_row)
// Four columns of one k.
int places() { return segments * k_quads() * 4; }
void pack(int base, int panel, int k_place, int part, int at) {
  int segment = k_place / (k_quads() * 4);
  int kk = k_place - segment * k_quads() * 4;
  int quad = panel * PANEL_QUADS + part;
  bool inside = kk < k && quad * 4 < columns;
  vec4 v = vec4(0.0);
  if (inside) v = from_quad(b[base + (segment * k + kk) * pitch + quad]);
  to[first() + at * PANEL_QUADS + part] = v;
}
#else
// Four columns of four k.
int places() { return segments * k_quads(); }
void pack(int base, int panel, int k_quad, int part, int at) {
  int segment = k_quad / k_quads();
  int kq = k_quad - segment * k_quads();
  mat4 v = mat4(0.0);
  [[unroll]] for (int e = 0; e < 4; e++) {
    int column = (panel * PANEL_QUADS + part) * 4 + e;
    if (column < columns) v[e] = from_quad(b[base + (segment * columns + column) * pitch + kq]);
  }
  v = transpose(v);
  [[unroll]] for (int kk = 0; kk < 4; kk++) to[first() + (at * 4 + kk) * PANEL_QUADS + part] = v[kk];
}
#endif

void main() {
  int at = int(linear_invocation());
  if (at >= count) return;
  if (at < first() / 4) {
    [[unroll]] for (int i = 0; i < 4; i++) to[at * 4 + i] = vec4(0.0);
  }
  int place = at / PANEL_QUADS;
  int panel = place / places();
  int batch = panel / panels;
  pack(batch * b_batch, panel - batch * panels, place - panel * places(), at % PANEL_QUADS, place);
}
