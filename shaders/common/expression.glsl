// Interprets elementwise expressions. A kernel that includes this file does not know what it computes with each quad:
// specialization constants hold a program without branches of at most STEPS steps. After the driver has compiled the
// kernel, nothing of the interpreter is left. engine/plan/expression.h creates these programs, and
// engine/plan/fusion.cpp merges them, so that a chain of elementwise operators becomes one kernel, or the epilogue of
// the GEMM before it.
//
// The including shader has the axis STORAGE, and defines FIRST_SLOT, the binding of the first slot. Slots are tensors
// of the result's shape, or that broadcast to it; they are read before the steps or written after them. If it also
// defines RESULT_BINDING, store() does everything. A shader that knows the rows of its result without constants, so
// that it is not specialized for every width, defines RESULT_PITCH, the quads of a row, and WITHOUT_PAD(v, at), which
// is v with zeros past the last column.
#ifndef HALFSTEP_EXPRESSION
#define HALFSTEP_EXPRESSION

#include "common/indexing.glsl"
#include "common/math.glsl"
#include "common/precision.glsl"

// Registers: one for each slot, one for the kernel's own result, one for each step.
const int SLOTS = 5;
const int KERNEL_VALUE = SLOTS;
const int FIRST_STEP = SLOTS + 1;
const int STEPS = 12;
vec4 registers[FIRST_STEP + STEPS];

layout(constant_id = 32) const uint RESULT_ROW_QUADS = 1u;  // of the result
layout(constant_id = 33) const uint RESULT_COLUMNS = 4u;
layout(constant_id = 34) const uint RESULT = 0u;  // WIDE or not, and its register

// A slot: its Walk (low four bits), WIDE, SPREAD, WRITTEN; then, if written, its register, or if walked by terms, the
// first term and their number.
const uint WALK_ABSENT = 0u;
const uint WALK_ALIKE = 1u;    // like the result
const uint WALK_COLUMNS = 2u;  // a row that repeats
const uint WALK_ROWS = 3u;     // one quad per row
const uint WALK_SCALAR = 4u;
const uint WALK_TERMS = 5u;
const uint WIDE = 16u;    // f32, whatever STORAGE is
const uint SPREAD = 32u;  // one element per row, broadcast to all columns
const uint WRITTEN = 64u;

#define DECLARE_SLOT(j)                                                                        \
  layout(constant_id = 35 + j) const uint SLOT_##j = 0u;                                       \
  layout(std430, binding = FIRST_SLOT + j) buffer Slot##j { QUAD slot_##j[]; };                \
  layout(std430, binding = FIRST_SLOT + j) buffer WideSlot##j { vec4 wide_slot_##j[]; };
DECLARE_SLOT(0)
DECLARE_SLOT(1)
DECLARE_SLOT(2)
DECLARE_SLOT(3)
DECLARE_SLOT(4)

// A step: its operation, and the registers of a and b, eight bits each.
#define DECLARE_STEP(i)                                     \
  layout(constant_id = 40 + 2 * i) const uint STEP_##i = 0u; \
  layout(constant_id = 41 + 2 * i) const uint CONSTANT_##i = 0u;
DECLARE_STEP(0)
DECLARE_STEP(1)
DECLARE_STEP(2)
DECLARE_STEP(3)
DECLARE_STEP(4)
DECLARE_STEP(5)
DECLARE_STEP(6)
DECLARE_STEP(7)
DECLARE_STEP(8)
DECLARE_STEP(9)
DECLARE_STEP(10)
DECLARE_STEP(11)

// exp(-v) of a very negative v is infinite, and the quotient is then 0, which is correct.
vec4 sigmoid(vec4 v) { return 1.0 / (1.0 + exp_or_nan(-v)); }

// tanh |v| = (1 - e) / (1 + e) with e = exp(-2 |v|) cannot overflow, unlike some drivers' own tanh. Near 0, where the
// difference cancels, the first terms of the Taylor series are exact to f32: the next is below 6e-8 of v for |v| < 0.2.
vec4 tanh_or_nan(vec4 v) {
  vec4 e = exp_or_nan(-2.0 * abs(v));
  vec4 large = sign(v) * (1.0 - e) / (1.0 + e);
  vec4 square = v * v;
  vec4 small = v + v * square * (square * (2.0 / 15.0 - square * (17.0 / 315.0)) - 1.0 / 3.0);
  return mix(large, small, lessThan(square, vec4(0.04)));
}

// 0 below -3, 1 above 3, v / 3 + 1 / 2 between.
vec4 hardswish_slope(vec4 v) {
  vec4 slope = v * (1.0 / 3.0) + 0.5;
  slope = mix(slope, vec4(0.0), lessThan(v, vec4(-3.0)));
  return mix(slope, vec4(1.0), greaterThan(v, vec4(3.0)));
}

// The value that would be read back if v were stored.
vec4 stored(vec4 v) {
#ifdef NARROW
  uvec4 bits = bits_nearest(v);
  return from_bits(SATURATE ? saturated(bits) : bits);
#else
  return v;
#endif
}

// The operations, numbered as in plan::Op. No two are contracted into one that rounds once: fused kernels give the same
// bits as separate ones.
vec4 computed(uint op, vec4 a, vec4 b, float constant) {
  precise vec4 v = a;
  if (op == 1u) v = a + b;
  if (op == 2u) v = a - b;
  if (op == 3u) v = a * b;
  if (op == 4u) v = a * constant;
  if (op == 5u) v = a + constant;
  if (op == 6u) v = mix(a, vec4(0.0), is_negative(a));  // not max(): NaN stays NaN
  if (op == 7u) v = mix(vec4(0.0), a, is_positive(b));
  if (op == 8u) v = sigmoid(a);
  if (op == 9u) v = tanh_or_nan(a);
  if (op == 10u) v = mix(min(a, constant), a, is_nan(a));
  if (op == 11u) v = mix(a * constant, a, is_positive(b));
  if (op == 12u) v = hardswish_slope(a);
  if (op == 13u) v = a / b;
  if (op == 14u) v = stored(a);
  return v;
}

#ifndef RESULT_PITCH
#define RESULT_PITCH RESULT_ROW_QUADS
#define WITHOUT_PAD(v, at) \
  (RESULT_COLUMNS % 4u == 0u ? v : keep_columns(v, at % RESULT_ROW_QUADS * 4u, RESULT_COLUMNS))
#endif

#ifndef TERM
#define TERM(t, at) 0u
#endif

// Which quad of a slot is read or written for quad `at` of the result.
uint slot_quad(uint slot, uint at) {
  uint walk = slot & 15u;
  uint place = at;
  if (walk == WALK_COLUMNS) place = at % RESULT_PITCH;
  if (walk == WALK_ROWS) place = at / RESULT_PITCH;
  if (walk == WALK_SCALAR) place = 0u;
  if (walk == WALK_TERMS) {
    place = 0u;
    uint first = slot >> 8 & 15u;
    uint count = slot >> 12;
    if (count > 0u) place += TERM(first, at);
    if (count > 1u) place += TERM(first + 1u, at);
    if (count > 2u) place += TERM(first + 2u, at);
    if (count > 3u) place += TERM(first + 3u, at);
  }
  return place;
}

#define LOAD_SLOT(j)                                                                        \
  if ((SLOT_##j & 15u) != WALK_ABSENT) {                                                    \
    uint place = slot_quad(SLOT_##j, at);                                                   \
    vec4 v = (SLOT_##j & WIDE) != 0u ? wide_slot_##j[place] : from_quad(slot_##j[place]);   \
    registers[j] = (SLOT_##j & SPREAD) != 0u ? v.xxxx : v;                                  \
  }

// Only the result may be rounded stochastically, or stored with a scale: see engine/plan/fusion.cpp.
#define STORE_SLOT(j)                                            \
  if ((SLOT_##j & WRITTEN) != 0u) {                              \
    vec4 v = WITHOUT_PAD(registers[SLOT_##j >> 8], at);          \
    if ((SLOT_##j & WIDE) != 0u) {                               \
      wide_slot_##j[at] = v;                                     \
    } else {                                                     \
      slot_##j[at] = to_quad(v, at);                             \
    }                                                            \
  }

#define TAKE_STEP(i)                                                                                         \
  if (STEP_##i != 0u) {                                                                                      \
    registers[FIRST_STEP + i] = computed(STEP_##i & 255u, registers[STEP_##i >> 8 & 255u],                   \
                                         registers[STEP_##i >> 16], uintBitsToFloat(CONSTANT_##i));          \
  }

// Evaluates the expression for quad `at`, for which the kernel itself computed `value`.
vec4 expressed(uint at, vec4 value) {
  registers[KERNEL_VALUE] = value;
  LOAD_SLOT(0)
  LOAD_SLOT(1)
  LOAD_SLOT(2)
  LOAD_SLOT(3)
  LOAD_SLOT(4)
  TAKE_STEP(0)
  TAKE_STEP(1)
  TAKE_STEP(2)
  TAKE_STEP(3)
  TAKE_STEP(4)
  TAKE_STEP(5)
  TAKE_STEP(6)
  TAKE_STEP(7)
  TAKE_STEP(8)
  TAKE_STEP(9)
  TAKE_STEP(10)
  TAKE_STEP(11)
  STORE_SLOT(0)
  STORE_SLOT(1)
  STORE_SLOT(2)
  STORE_SLOT(3)
  STORE_SLOT(4)
  return WITHOUT_PAD(registers[RESULT >> 8], at);
}

#ifdef RESULT_BINDING
layout(std430, binding = RESULT_BINDING) writeonly buffer Result { QUAD result[]; };
layout(std430, binding = RESULT_BINDING) writeonly buffer WideResult { vec4 wide_result[]; };

// Evaluates the expression for quad `at` and stores the result.
void store(uint at, vec4 value) {
  vec4 v = expressed(at, value);
  if ((RESULT & WIDE) != 0u) {
    wide_result[at] = v;
  } else {
    result[at] = to_quad(v, at);
  }
}
#endif

#endif
