// Gathers samples of any shape: element e of sample indices[first + b] becomes element e of sample b of the input,
// whose rows are padded to quads. The including shader declares the field's elements at binding 1 and the input at
// binding 2.
#ifndef HALFSTEP_FIELD
#define HALFSTEP_FIELD

#include "common/indexing.glsl"

layout(push_constant) uniform Push {
  uint rows;           // of the input
  uint columns;        // of its last axis
  uint sample_size;    // elements of a sample
  uint first;          // offset of this batch in the step's indices, which are bound
  uint first_element;  // of sample 0 in the field
  uint stride;         // elements of the field from one sample to the next
  uint channels;       // means and factors there are, for the last axis
};
layout(std430, binding = 0) readonly buffer Indices { uint indices[]; };

// Where the field has the element of the batch that is the n-th if nothing is padded.
uint source_of(uint n) { return first_element + indices[first + n / sample_size] * stride + n % sample_size; }

#endif
