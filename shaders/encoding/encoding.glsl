// An encoding of coordinates: feature(position, column) is an element of the row of its features, slope(position, column)
// its derivatives by the coordinates.
layout(constant_id = 1) const uint COUNT = 1u;    // of features of a coordinate, in the encoding's own terms
layout(constant_id = 2) const uint COLUMNS = 1u;  // of a row of features
const uint ROW_QUADS = (COLUMNS + 3u) / 4u;

layout(push_constant) uniform Push { uint rows; };

#if defined(ENCODING_frequency)
#include "encoding/frequency.glsl"
#elif defined(ENCODING_one_blob)
#include "encoding/one_blob.glsl"
#else
#include "encoding/spherical_harmonics.glsl"
#endif
