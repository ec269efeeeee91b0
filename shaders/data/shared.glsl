// Tensors in an application's memory: rows of the last axis without padding.
#ifndef HALFSTEP_SHARED
#define HALFSTEP_SHARED

#include "common/indexing.glsl"

layout(push_constant) uniform Push {
  uint rows;
  uint columns;  // of the last axis
  uint first;    // element of the bound memory that the tensor begins with
};

#endif
