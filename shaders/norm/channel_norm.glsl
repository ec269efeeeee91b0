// Common code of the norms: sets of rows of channels, counted in quads. A set's rows are split into slices; an
// invocation processes one quad of channels of one slice, so that per-channel values are read once. Adjacent
// invocations have adjacent channels. Per-channel values are stored as planes: {sets, 2, channels}.
#include "common/indexing.glsl"

layout(constant_id = 1) const uint QUADS = 1u;  // per row: a constant, since software drivers divide slowly

layout(push_constant) uniform Push {
#ifdef BEFORE_PUSH
  BEFORE_PUSH
#endif
  uint rows;    // per set
  uint length;  // rows of a slice; the last may have fewer
  uint slices;  // per set
  uint invocations;
#ifdef MORE_PUSH
  MORE_PUSH
#endif
};

struct Slice {
  uint set;
  uint index;  // in the set
  uint channel;
};

Slice slice_of(uint invocation) {
  uint slice = invocation / QUADS;
  return Slice(slice / slices, slice % slices, invocation % QUADS);
}

// The quads of a slice: from begin, in steps of QUADS, up to but not including the end.
uint slice_begin(Slice s) { return (s.set * rows + s.index * length) * QUADS + s.channel; }
uint slice_end(Slice s) { return (s.set * rows + min((s.index + 1u) * length, rows)) * QUADS; }
uint rows_in(Slice s) { return min(length, rows - s.index * length); }

// The start of plane 0 of a set; plane 1 is QUADS further.
uint plane_of(Slice s) { return s.set * 2u * QUADS + s.channel; }
// The same for values per slice.
uint partial_plane_of(Slice s) { return (s.set * slices + s.index) * 2u * QUADS + s.channel; }
