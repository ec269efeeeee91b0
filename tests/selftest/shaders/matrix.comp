#version 450
// Stands for the modules of matrix_module.cpp, which SPIRV-Tools may not know: the same bindings and push constants, and
// full subgroups.
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer First {
  uint first[];
};
layout(set = 0, binding = 1) readonly buffer Second {
  uint second[];
};
layout(set = 0, binding = 2) readonly buffer Sum {
  uint sum[];
};
layout(set = 0, binding = 3) writeonly buffer Result {
  uint result[];
};
layout(push_constant) uniform Push {
  uint places[10];
};

void main() {
  result[gl_LocalInvocationIndex] = first[places[0]] + second[places[2]] + sum[places[4]] + gl_SubgroupSize;
}
