// Groups of channels of every set, an invocation each: what group norm makes of numbers for every channel. Element by
// element, since a group may begin anywhere in a quad.
#include "common/indexing.glsl"

layout(push_constant) uniform Push {
  uint invocations;
  uint groups;
  uint channels;
  float rows;  // of a set
  float epsilon;
};

struct Group {
  uint plane;   // where plane 0 of the set lies; plane 1 is `pitch` further
  uint begin;   // its channels: from the first, up to but not including the end
  uint end;
};

uint pitch() { return (channels + 3u) / 4u * 4u; }

Group group_of(uint invocation) {
  uint size = channels / groups;
  uint first = invocation % groups * size;
  return Group(invocation / groups * 2u * pitch(), first, first + size);
}

// Of a row of numbers: the last group also writes the zeros that pad it.
uint written_end(Group group) { return group.end == channels ? pitch() : group.end; }
