// The axis `//! CONVERSION = f32_f16 ...` of shaders that read one type and write another: first what is read, then
// what is written. A value without an underscore, such as "f16", reads and writes that one.
#if defined(CONVERSION_f32) || defined(CONVERSION_f32_f16) || defined(CONVERSION_f32_packed)
#define STORAGE_f32
#elif defined(CONVERSION_f16) || defined(CONVERSION_f16_f32)
#define STORAGE_f16
#else
#define STORAGE_packed
#endif

#if defined(CONVERSION_f32_f16)
#define RESULT_f16
#elif defined(CONVERSION_f32_packed)
#define RESULT_packed
#elif defined(CONVERSION_f16_f32) || defined(CONVERSION_packed_f32)
#define RESULT_f32
#endif

#include "common/precision.glsl"
