#version 440
#extension GL_GOOGLE_include_directive : require
// Copies a step's report to where those of the last runs are kept.
#include "common/indexing.glsl"

layout(push_constant) uniform Push {
  uint quads;
  uint kept_reports;
};
layout(std430, binding = 0) readonly buffer ReportBuffer { uvec4 report[]; };
layout(std430, binding = 1) writeonly buffer Kept { uvec4 kept[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uint runs = report[2].z;  // see step/report.h
  kept[(runs - 1u) % kept_reports * quads + i] = report[i];
}
