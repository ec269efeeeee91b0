// Slices of which LANES invocations share each quad of channels (common/columns.glsl).
#include "norm/channel_norm.glsl"
#include "common/columns.glsl"

// What an invocation and the other lanes compute, and the first of these then stores.
struct OwnSlice {
  Slice slice;
  bool is_there;
};

OwnSlice own_slice() {
  uint blocks = (QUADS + TOGETHER - 1u) / TOGETHER;
  uint unit = work_unit();
  uint slice = unit / blocks;
  Slice s = Slice(slice / slices, slice % slices, unit % blocks * TOGETHER + in_unit());
  return OwnSlice(s, s.channel < QUADS && slice * QUADS < invocations);
}
