// Groups of channels of every set, one invocation each: group norm's reduction over the channels of a group. Works
// element by element, since a group may start anywhere in a quad.
#include "common/indexing.glsl"

layout(push_constant) uniform Push {
  uint invocations;
  uint groups;
  uint channels;
  float rows;  // of a set
  float epsilon;
};

struct Group {
  uint plane;   // start of plane 0 of the set; plane 1 is `pitch` further
  uint begin;   // its channels: from begin up to but not including end
  uint end;
};

uint pitch() { return (channels + 3u) / 4u * 4u; }

Group group_of(uint invocation) {
  uint size = channels / groups;
  uint first = invocation % groups * size;
  return Group(invocation / groups * 2u * pitch(), first, first + size);
}

// Of a row of numbers: the last group also writes the padding zeros.
uint written_end(Group group) { return group.end == channels ? pitch() : group.end; }
