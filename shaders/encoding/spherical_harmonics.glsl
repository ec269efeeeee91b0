// The real spherical harmonics below degree COUNT of a direction {x, y, z} of length 1, as polynomials: number l^2 + l + m
// is that of degree l and order m. With the factor (-1)^m, as quantum mechanics has it.

// A number, and its derivative by z.
struct Changing {
  float value;
  float by_z;
};

// The factor of degree l and order m >= 0 that depends on z, normalised: the associated Legendre function without the
// power of sqrt(1 - z^2) that it has with m.
Changing polar(int l, int m, float z) {
  float first = 0.28209479;  // sqrt(1 / (4 pi))
  for (int i = 1; i <= m; i++) first *= -sqrt(float(2 * i + 1) / float(2 * i));
  Changing before = Changing(0.0, 0.0);
  Changing now = Changing(first, 0.0);
  float b = 0.0;
  for (int i = m + 1; i <= l; i++) {
    float a = sqrt(float(4 * i * i - 1) / float(i * i - m * m));
    Changing next = Changing(a * (z * now.value - b * before.value),
                             a * (now.value + z * now.by_z - b * before.by_z));
    b = 1.0 / a;
    before = now;
    now = next;
  }
  return now;
}

// {Re, Im} of (x + i y)^m.
vec2 azimuthal(int m, vec2 direction) {
  vec2 power = vec2(1.0, 0.0);
  for (int i = 0; i < m; i++) {
    power = vec2(direction.x * power.x - direction.y * power.y, direction.x * power.y + direction.y * power.x);
  }
  return power;
}

const float SQRT_2 = 1.41421356;

int degree_of(uint column) {
  int l = 0;
  while (uint((l + 1) * (l + 1)) <= column) l++;
  return l;
}

float feature(vec4 direction, uint column) {
  int l = degree_of(column);
  int m = int(column) - l * (l + 1);
  float value = polar(l, abs(m), direction.z).value;
  if (m == 0) return value;
  vec2 power = azimuthal(abs(m), direction.xy);
  return SQRT_2 * value * (m > 0 ? power.x : power.y);
}

vec4 slope(vec4 direction, uint column) {
  int l = degree_of(column);
  int m = int(column) - l * (l + 1);
  Changing p = polar(l, abs(m), direction.z);
  if (m == 0) return vec4(0.0, 0.0, p.by_z, 0.0);
  vec2 lower = azimuthal(abs(m) - 1, direction.xy);
  vec2 power = vec2(direction.x * lower.x - direction.y * lower.y, direction.x * lower.y + direction.y * lower.x);
  vec2 by_xy = float(abs(m)) * p.value * (m > 0 ? vec2(lower.x, -lower.y) : vec2(lower.y, lower.x));
  return SQRT_2 * vec4(by_xy, p.by_z * (m > 0 ? power.x : power.y), 0.0);
}
