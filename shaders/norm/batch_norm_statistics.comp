#version 440
#extension GL_GOOGLE_include_directive : require
#define MORE_PUSH \
  uint channels;  \
  float epsilon;  \
  float momentum;
#include "norm/moments_merge.glsl"

// Merges the moments of a batch: its mean and inverse std, and the next running statistics, which use the unbiased
// variance.
layout(std430, binding = 1) readonly buffer RunningMean { vec4 running_mean[]; };
layout(std430, binding = 2) readonly buffer RunningVariance { vec4 running_variance[]; };
layout(std430, binding = 3) writeonly buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 4) writeonly buffer NextMean { vec4 next_mean[]; };
layout(std430, binding = 5) writeonly buffer NextVariance { vec4 next_variance[]; };

void main() {
  OwnSlice own = own_slice();
  Moments batch = merged_parts(own);
  if (!own.is_there || lane() != 0u) return;
  uint i = own.slice.channel;
  float count = float(rows);
  statistics[i] = batch.mean;
  statistics[QUADS + i] = keep_columns(1.0 / sqrt(batch.squares / count + epsilon), i * 4u, channels);
  next_mean[i] = mix(running_mean[i], batch.mean, momentum);
  next_variance[i] = mix(running_variance[i], batch.squares / (count - 1.0), momentum);
}
