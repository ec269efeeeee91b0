#version 440
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"

// Merges each two adjacent sorted runs of `length`: an entry's place is its own in its run and that which it would have
// in the other. Of equal ids those of the first run come first.
layout(push_constant) uniform Push {
  uint count;
  uint length;
};
layout(std430, binding = 0) readonly buffer Runs { uvec2 runs[]; };  // {id, position}
layout(std430, binding = 1) writeonly buffer Merged { uvec2 merged[]; };

// The number of entries from `begin` to `end` that come before `id`: those below it, or up to it.
uint entries_before(uint id, uint begin, uint end, bool or_equal) {
  uint low = begin;
  while (low < end) {
    uint middle = (low + end) / 2u;
    uint other = runs[middle].x;
    if (other < id || (or_equal && other == id)) {
      low = middle + 1u;
    } else {
      end = middle;
    }
  }
  return low - begin;
}

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  uint first = i / (2u * length) * (2u * length);
  uint second = min(first + length, count);
  uint end = min(second + length, count);
  bool in_first = i < second;
  uvec2 entry = runs[i];
  uint others = in_first ? entries_before(entry.x, second, end, false) : entries_before(entry.x, first, second, true);
  merged[(in_first ? i : first + i - second) + others] = entry;
}
