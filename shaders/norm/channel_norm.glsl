// Sets of rows of channels, counted in quads: what the normalisations share. A set's rows are cut into slices; an
// invocation takes one quad of channels through one slice, so that what belongs to the channel is read once. Neighbours
// have neighbouring channels. Numbers for every channel come in planes: {sets, 2, channels}.
#include "common/indexing.glsl"

layout(constant_id = 1) const uint QUADS = 1u;  // of a row: a constant, since software drivers divide slowly

layout(push_constant) uniform Push {
  uint rows;    // of a set
  uint length;  // rows of a slice; the last may have fewer
  uint slices;  // of a set
  uint invocations;
};

struct Slice {
  uint set;
  uint index;  // among the set's
  uint channel;
};

Slice slice_of(uint invocation) {
  uint slice = invocation / QUADS;
  return Slice(slice / slices, slice % slices, invocation % QUADS);
}

// The quads of a slice: from the first, QUADS apart, up to but not including the end.
uint slice_begin(Slice s) { return (s.set * rows + s.index * length) * QUADS + s.channel; }
uint slice_end(Slice s) { return (s.set * rows + min((s.index + 1u) * length, rows)) * QUADS; }
uint rows_in(Slice s) { return min(length, rows - s.index * length); }

// Where plane 0 of a set lies; plane 1 is QUADS further.
uint plane_of(Slice s) { return s.set * 2u * QUADS + s.channel; }
// The same for numbers of every slice.
uint partial_plane_of(Slice s) { return (s.set * slices + s.index) * 2u * QUADS + s.channel; }
