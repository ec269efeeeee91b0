#version 450
// 16-bit elements of storage buffers, each accessed by an invocation of its own.
//! OPERATION = narrow widen copy
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x_id = 0) in;
#if defined(OPERATION_narrow)
layout(set = 0, binding = 0) readonly buffer Source {
  float source[];
};
layout(set = 0, binding = 1) writeonly buffer Result {
  float16_t result[];
};
#elif defined(OPERATION_widen)
layout(set = 0, binding = 0) readonly buffer Source {
  float16_t source[];
};
layout(set = 0, binding = 1) writeonly buffer Result {
  float result[];
};
#else
layout(set = 0, binding = 0) readonly buffer Source {
  float16_t source[];
};
layout(set = 0, binding = 1) writeonly buffer Result {
  float16_t result[];
};
#endif
layout(push_constant) uniform Push {
  uint count;
  uint step_;  ///< only elements whose number is divisible by it are written
};

void main() {
  const uint at = gl_GlobalInvocationID.x;
  if (at >= count || at % step_ != 0u) return;
#if defined(OPERATION_narrow)
  result[at] = float16_t(source[at]);
#elif defined(OPERATION_widen)
  result[at] = float(source[at]);
#else
  result[at] = source[at];
#endif
}
