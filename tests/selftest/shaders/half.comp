#version 450
// f16 arithmetic. Numbers are given and stored as f32, which are f16 numbers.
//! OPERATION = add mul fma div sqrt exp tanh min max
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer First {
  float first[];
};
layout(set = 0, binding = 1) readonly buffer Second {
  float second[];
};
layout(set = 0, binding = 2) readonly buffer Third {
  float third[];
};
layout(set = 0, binding = 3) writeonly buffer Result {
  float result[];
};
layout(push_constant) uniform Push {
  uint count;
};

void main() {
  const uint at = gl_GlobalInvocationID.x;
  if (at >= count) return;
  const float16_t a = float16_t(first[at]);
  const float16_t b = float16_t(second[at]);
  const float16_t c = float16_t(third[at]);
#if defined(OPERATION_add)
  precise const float16_t number = a + b;
#elif defined(OPERATION_mul)
  precise const float16_t number = a * b;
#elif defined(OPERATION_fma)
  precise const float16_t number = fma(a, b, c);
#elif defined(OPERATION_div)
  precise const float16_t number = a / b;
#elif defined(OPERATION_sqrt)
  precise const float16_t number = sqrt(a);
#elif defined(OPERATION_exp)
  precise const float16_t number = exp(a);
#elif defined(OPERATION_tanh)
  precise const float16_t number = tanh(a);
#elif defined(OPERATION_min)
  precise const float16_t number = min(a, b);
#elif defined(OPERATION_max)
  precise const float16_t number = max(a, b);
#endif
  result[at] = float(number);
}
