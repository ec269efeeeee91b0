// Functions that some drivers get wrong.
#ifndef HALFSTEP_MATH
#define HALFSTEP_MATH

// NaN stays NaN: SwiftShader's exp() makes infinity of it, and its log() a number, which would hide a fault.
vec4 exp_or_nan(vec4 v) { return mix(exp(v), v, isnan(v)); }
float log_or_nan(float v) { return isnan(v) ? v : log(v); }

#endif
