// The index of an invocation, and the position of an element in memory.
#ifndef HALFSTEP_INDEXING
#define HALFSTEP_INDEXING

// Must come before its first use: glslang assumes a gl_WorkGroupSize of 1 if the size is declared later.
layout(local_size_x_id = 0) in;

// One-dimensional kernels: plan::groups_for folds the workgroups over x and y.
uint linear_group() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }
uint linear_invocation() { return linear_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x; }

// Whether no invocation runs, which is false in each that asks; no driver knows that when it compiles.
bool nothing_runs() { return gl_NumWorkGroups.x == 0u; }

// Sets the elements of a quad at or past `columns` to zero; `column` is the index of its first element.
vec4 keep_columns(vec4 v, uint column, uint columns) {
  return mix(vec4(0.0), v, lessThan(uvec4(column) + uvec4(0u, 1u, 2u, 3u), uvec4(columns)));
}

#endif
