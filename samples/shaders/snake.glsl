// sin(t) and cos(t): Vulkan lets its own be off by 2^-11.
vec4 part_of_turn(vec4 t) { return t * 0.318309886 - floor(t * 0.318309886 + 0.5); }  // in half turns, from -1/2 to 1/2

vec4 sine(vec4 r) {
  vec4 a = r * 3.14159265;
  vec4 s = a * a;
  return a + a * s * (s * (s * (s * (s * (-1.0 / 39916800.0) + 1.0 / 362880.0) - 1.0 / 5040.0) + 1.0 / 120.0) - 1.0 / 6.0);
}

// sin(t)^2 has a period of half a turn.
vec4 squared_sine(vec4 t) {
  vec4 s = sine(part_of_turn(t));
  return s * s;
}

// sin(2 t), likewise.
vec4 sine_of_twice(vec4 t) {
  vec4 r = part_of_turn(t);
  vec4 s = sine(r);
  return 2.0 * s * (1.0 - 2.0 * sine(r * 0.5) * sine(r * 0.5));
}
