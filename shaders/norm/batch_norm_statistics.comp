#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"

// Mean and inverse std of a batch from its moments, and the next running statistics, which use the unbiased variance.
layout(push_constant) uniform Push {
  uint quads;
  uint channels;
  float rows;
  float epsilon;
  float momentum;
};
layout(std430, binding = 0) readonly buffer Moments { vec4 moments[]; };
layout(std430, binding = 1) readonly buffer RunningMean { vec4 running_mean[]; };
layout(std430, binding = 2) readonly buffer RunningVariance { vec4 running_variance[]; };
layout(std430, binding = 3) writeonly buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 4) writeonly buffer NextMean { vec4 next_mean[]; };
layout(std430, binding = 5) writeonly buffer NextVariance { vec4 next_variance[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 mean = moments[i];
  vec4 squares = moments[quads + i];
  statistics[i] = mean;
  statistics[quads + i] = keep_columns(1.0 / sqrt(squares / rows + epsilon), i * 4u, channels);
  next_mean[i] = mix(running_mean[i], mean, momentum);
  next_variance[i] = mix(running_variance[i], squares / (rows - 1.0), momentum);
}
