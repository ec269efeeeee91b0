// The type of all arithmetic: stored as it is.
#if defined(STORAGE_f32)
#define QUAD vec4
#define from_quad(q) (q)
const float LARGEST_FINITE = 3.402823466e38;
#endif
