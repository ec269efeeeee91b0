// Where an invocation is, and where an element lies.
#ifndef HALFSTEP_INDEXING
#define HALFSTEP_INDEXING

// Ahead of what uses it: glslang takes gl_WorkGroupSize for 1 where the size is declared later.
layout(local_size_x_id = 0) in;

// Flat kernels: plan::groups_for folds the workgroups over x and y.
uint linear_group() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }
uint linear_invocation() { return linear_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x; }

// Zeroes the elements of a quad that lie past the last of `columns`; `column` is its first element's.
vec4 keep_columns(vec4 v, uint column, uint columns) {
  return mix(vec4(0.0), v, lessThan(uvec4(column) + uvec4(0u, 1u, 2u, 3u), uvec4(columns)));
}

#endif
