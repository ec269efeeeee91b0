// The shape that is learned: a function of positions in the unit cube, {0.5, 0.5, 0.5} its centre. Where it is a
// combination of parts it is a bound of the distance, which is enough to march by.
float smooth_minimum(float a, float b, float k) {
  float h = max(k - abs(a - b), 0.0) / k;
  return min(a, b) - 0.25 * h * h * k;
}

float rounded_box(vec3 p, vec3 half_size, float radius) {
  vec3 q = abs(p) - half_size + radius;
  return length(max(q, vec3(0.0))) + min(max(q.x, max(q.y, q.z)), 0.0) - radius;
}

float torus(vec3 p, float radius, float tube) { return length(vec2(length(p.xz) - radius, p.y)) - tube; }

float scene(vec3 position) {
  vec3 p = 2.0 * position - 1.0;
  vec3 q = p - vec3(0.0, 0.06, 0.0);
  vec3 k = 9.0 * q;
  float gyroid = (abs(dot(sin(k), cos(k.zxy))) - 0.32) / 15.0;
  float shell = max(gyroid, abs(length(q) - 0.52) - 0.035);
  float core = length(q) - 0.27;
  vec3 r = vec3(q.x, 0.906 * q.y - 0.423 * q.z, 0.423 * q.y + 0.906 * q.z);
  float ring = torus(r, 0.68, 0.045);
  float floor_box = rounded_box(p + vec3(0.0, 0.76, 0.0), vec3(0.86, 0.07, 0.86), 0.05);
  float post = max(length(p.xz) - 0.12 - 0.25 * max(-0.45 - p.y, 0.0), p.y + 0.2);
  vec3 corner = vec3(abs(p.x), p.y, abs(p.z)) - vec3(0.66, -0.58, 0.66);
  float d = smooth_minimum(floor_box, post, 0.12);
  d = smooth_minimum(d, length(corner) - 0.12, 0.06);
  d = smooth_minimum(d, core, 0.08);
  return 0.5 * min(min(d, shell), ring);
}
