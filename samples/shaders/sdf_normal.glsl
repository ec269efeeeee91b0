const float NORMAL_REACH = 0.004;

vec3 corner_of(uint corner) {
  return vec3((corner & 1u) == 0u ? 1.0 : -1.0, (corner & 2u) == 0u ? 1.0 : -1.0,
              corner == 0u || corner == 3u ? 1.0 : -1.0);
}

// From the distances at a tetrahedron's corners.
vec3 normal_of(vec4 distances) {
  vec3 n = vec3(0.0);
  for (uint corner = 0u; corner < 4u; ++corner) n += distances[corner] * corner_of(corner);
  return n / max(length(n), 1e-9);
}
