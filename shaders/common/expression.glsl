// Interprets elementwise expressions. A kernel that includes this file does not know what it computes with each quad:
// specialization constants hold a program without branches of at most STEPS steps. After the driver has compiled the
// kernel, nothing of the interpreter is left. engine/plan/expression.h creates these programs, and
// engine/plan/fusion.cpp merges them, so that a chain of elementwise operators becomes one kernel, or the epilogue of
// the GEMM before it.
//
// The including shader has the axis STORAGE, and defines FIRST_ARGUMENT, the binding of the first argument. Arguments
// are tensors of the result's shape, or that broadcast to it; they are read before the steps or written after them. If
// it also defines RESULT_BINDING, store() does everything. A shader that knows the rows of its result without
// constants, so that it is not specialized for every width, defines RESULT_PITCH, the quads of a row, and
// WITHOUT_PAD(v, at), which is v with zeros past the last column.
#ifndef HALFSTEP_EXPRESSION
#define HALFSTEP_EXPRESSION

#include "common/indexing.glsl"
#include "common/math.glsl"
#include "common/precision.glsl"

// Registers: one for each argument, one for the kernel's own result, one for each step.
const int ARGUMENTS = 5;
const int KERNEL_VALUE = ARGUMENTS;
const int FIRST_STEP = ARGUMENTS + 1;
const int STEPS = 12;
vec4 registers[FIRST_STEP + STEPS];

layout(constant_id = 32) const uint RESULT_ROW_QUADS = 1u;  // of the result
layout(constant_id = 33) const uint RESULT_COLUMNS = 4u;
layout(constant_id = 34) const uint RESULT = 0u;  // WIDE or not, and its register

// An argument: its Walk (low four bits), WIDE, SPREAD, WRITTEN; then, if written, its register, or if walked by terms,
// the first term and their number.
const uint WALK_ABSENT = 0u;
const uint WALK_ALIKE = 1u;    // like the result
const uint WALK_COLUMNS = 2u;  // a row that repeats
const uint WALK_ROWS = 3u;     // one quad per row
const uint WALK_SCALAR = 4u;
const uint WALK_TERMS = 5u;
const uint WIDE = 16u;    // f32, whatever STORAGE is
const uint SPREAD = 32u;  // one element per row, broadcast to all columns
const uint WRITTEN = 64u;

#ifndef DECLARE_ELEMENTS
#define DECLARE_ELEMENTS(at, Name, name)
#endif
#define DECLARE_ARGUMENT(j)                                                                 \
  layout(constant_id = 35 + j) const uint ARGUMENT_##j = 0u;                                \
  layout(std430, binding = FIRST_ARGUMENT + j) buffer Argument##j { QUAD argument_##j[]; }; \
  layout(std430, binding = FIRST_ARGUMENT + j) buffer WideArgument##j { vec4 wide_argument_##j[]; }; \
  DECLARE_ELEMENTS(FIRST_ARGUMENT + j, Argument##j, argument_##j)
DECLARE_ARGUMENT(0)
DECLARE_ARGUMENT(1)
DECLARE_ARGUMENT(2)
DECLARE_ARGUMENT(3)
DECLARE_ARGUMENT(4)

// A step: its operation, and the registers of a and b, eight bits each.
#define DECLARE_STEP(i)                                      \
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

// The value that would be read back if v were stored.
vec4 stored(vec4 v) {
#ifdef NARROW
  uvec4 bits = bits_nearest(v);
  return from_bits(SATURATE ? saturated(bits) : bits);
#else
  return v;
#endif
}

#define PRIMITIVE_FUNCTIONS
#include "plan/primitives.def"
#undef PRIMITIVE_FUNCTIONS

// The primitives. No two are contracted into one that rounds once: fused kernels give the same bits as separate ones.
vec4 computed(uint op, vec4 a, vec4 b, float c) {
  precise vec4 v = a;
#define PRIMITIVE(number, name, arguments, result) if (op == uint(number)) v = result;
#include "plan/primitives.def"
#undef PRIMITIVE
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

// Which quad of an argument is read or written for quad `at` of the result.
uint argument_quad(uint argument, uint at) {
  uint walk = argument & 15u;
  uint place = at;
  if (walk == WALK_COLUMNS) place = at % RESULT_PITCH;
  if (walk == WALK_ROWS) place = at / RESULT_PITCH;
  if (walk == WALK_SCALAR) place = 0u;
  if (walk == WALK_TERMS) {
    place = 0u;
    uint first = argument >> 8 & 15u;
    uint count = argument >> 12;
    if (count > 0u) place += TERM(first, at);
    if (count > 1u) place += TERM(first + 1u, at);
    if (count > 2u) place += TERM(first + 2u, at);
    if (count > 3u) place += TERM(first + 3u, at);
    if (count > 4u) place += TERM(first + 4u, at);
    if (count > 5u) place += TERM(first + 5u, at);
    if (count > 6u) place += TERM(first + 6u, at);
    if (count > 7u) place += TERM(first + 7u, at);
  }
  return place;
}

#ifndef PLACE
#define PLACE uint
#define READ_ARGUMENT(j, at, v)                                                                  \
  uint place = argument_quad(ARGUMENT_##j, at);                                                  \
  v = (ARGUMENT_##j & WIDE) != 0u ? wide_argument_##j[place] : from_quad(argument_##j[place]);   \
  if ((ARGUMENT_##j & SPREAD) != 0u) v = v.xxxx;
#define SET_WIDE(name, at, v) wide_##name[at] = v;
#define SET_NARROW(name, at, v) name[at] = to_quad(v, at);
#endif

#define LOAD_ARGUMENT(j)                           \
  if ((ARGUMENT_##j & 15u) != WALK_ABSENT) {       \
    vec4 v;                                        \
    READ_ARGUMENT(j, at, v)                        \
    registers[j] = v;                              \
  }

// Only the result may be rounded stochastically, or stored with a scale: see engine/plan/fusion.cpp.
#define STORE_ARGUMENT(j)                                   \
  if ((ARGUMENT_##j & WRITTEN) != 0u) {                     \
    vec4 v = WITHOUT_PAD(registers[ARGUMENT_##j >> 8], at); \
    if ((ARGUMENT_##j & WIDE) != 0u) {                      \
      SET_WIDE(argument_##j, at, v)                    \
    } else {                                                \
      SET_NARROW(argument_##j, at, v)                       \
    }                                                       \
  }

#define TAKE_STEP(i)                                                                                \
  if (STEP_##i != 0u) {                                                                             \
    registers[FIRST_STEP + i] = computed(STEP_##i & 255u, registers[STEP_##i >> 8 & 255u],          \
                                         registers[STEP_##i >> 16], uintBitsToFloat(CONSTANT_##i)); \
  }

void read_arguments(PLACE at) {
  LOAD_ARGUMENT(0)
  LOAD_ARGUMENT(1)
  LOAD_ARGUMENT(2)
  LOAD_ARGUMENT(3)
  LOAD_ARGUMENT(4)
}

// Evaluates the expression for quad `at`, whose arguments were read, and for which the kernel itself computed `value`.
vec4 evaluated(PLACE at, vec4 value) {
  registers[KERNEL_VALUE] = value;
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
  STORE_ARGUMENT(0)
  STORE_ARGUMENT(1)
  STORE_ARGUMENT(2)
  STORE_ARGUMENT(3)
  STORE_ARGUMENT(4)
  return WITHOUT_PAD(registers[RESULT >> 8], at);
}

vec4 expressed(PLACE at, vec4 value) {
  read_arguments(at);
  return evaluated(at, value);
}

#ifdef RESULT_BINDING
layout(std430, binding = RESULT_BINDING) writeonly buffer Result { QUAD result[]; };
layout(std430, binding = RESULT_BINDING) writeonly buffer WideResult { vec4 wide_result[]; };
DECLARE_ELEMENTS(RESULT_BINDING, Result, result)

void store_result(PLACE at, vec4 v) {
  if ((RESULT & WIDE) != 0u) {
    SET_WIDE(result, at, v)
  } else {
    SET_NARROW(result, at, v)
  }
}

// Evaluates the expression for quad `at` and stores the result.
void store(PLACE at, vec4 value) { store_result(at, expressed(at, value)); }
#endif

#endif
