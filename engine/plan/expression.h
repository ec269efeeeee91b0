#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <vector>

#include "plan/layout.h"

/// Elementwise arithmetic as plain data, with which shaders/common/expression.glsl is specialized.
namespace halfstep::plan {

/// The operation of a step on registers a and b and a constant c: the primitives, numbered as in their table.
enum class Op : std::uint8_t {
  none,
#define PRIMITIVE(number, name, arguments, result) name = (number),
#include "plan/primitives.def"
#undef PRIMITIVE
};

/// The register of a value: one per argument, one for the kernel's own result, one per step.
using Register = std::uint8_t;
constexpr std::size_t max_arguments = 5;
constexpr std::size_t max_steps = 12;
constexpr std::size_t max_terms = 8;
constexpr Register kernel_value = max_arguments;
constexpr Register first_step = max_arguments + 1;

struct Step {
  Op op = Op::none;
  Register a = 0;
  Register b = 0;
  float constant = 0;
};

/// Which quad of a tensor is read for a quad of the result; numbered as in expression.glsl.
enum class Walk : std::uint8_t {
  absent,
  alike,    ///< the same quad
  columns,  ///< a row that repeats
  rows,     ///< one quad per row
  scalar,   ///< the only quad
  terms,    ///< the sum of Reading::terms
};

/// Adds at / divisor % extent * stride, in quads.
struct Term {
  std::uint32_t divisor = 1;
  std::uint32_t extent = 1;
  std::uint32_t stride = 1;

  bool operator==(const Term&) const = default;
};

/// How a tensor that broadcasts to the result is read.
struct Reading {
  Walk walk = Walk::alike;
  bool spread = false;  ///< one column is broadcast to all
  std::vector<Term> terms{};

  bool operator==(const Reading&) const = default;
};

/// How a tensor of shape `from` is read for a result of shape `to`, to which it broadcasts.
Reading reading(const Shape& to, const Shape& from);

/// The work of a kernel that includes expression.glsl, for each quad. Each argument i that is read is loaded into
/// register i before the steps; the arguments after those are stored after the steps. Their tensors are the dispatch's
/// last operands.
struct Expression {
  /// The position of the kernel's own work.
  enum class Kernel : std::uint8_t {
    none,    ///< no other work: pointwise.comp
    before,  ///< it computes kernel_value first
    after,   ///< it reads the expression's value
  };
  Kernel kernel = Kernel::none;
  Layout layout{};           ///< of the quads that are computed
  std::uint32_t result = 0;  ///< the operand that takes the value; where the kernel comes after, what it makes of it
  std::uint32_t first_argument = 1;  ///< the operand of argument 0; those of the others follow
  /// The type that the kernel's variant is for: what it reads, writes and rounds to is of this type or f32. Of
  /// Kernel::none, what it rounds to; the rest follows from its operands.
  DType storage = DType::f32;
  bool noise = true;        ///< whether it can round stochastically
  bool rows_known = false;  ///< whether the kernel knows its rows by itself, so that they are no constants
  std::vector<Reading> reads{};
  std::vector<Register> writes{};  ///< stored in addition to the value, with Walk::alike
  std::vector<Step> steps{};
  Register value = kernel_value;

  /// Adds a step and returns its register.
  Register add(Step step);
  /// Whether its kernel can be specialized for it.
  bool fits() const;
  /// Whether it rounds to `storage` on the way.
  bool rounds() const;
  /// The number of terms of all reads together.
  std::size_t terms() const;
};

/// Whether the result does not depend on the length of rows: no read repeats by row, and no tensor has padding.
bool ignores_rows(const Expression& expression);

/// An expression as specialization constants from first_expression_constant on. `wide` tells for each operand of the
/// dispatch whether it is f32.
std::vector<std::uint32_t> expression_constants(const Expression& expression, const std::vector<bool>& wide);
constexpr std::size_t first_expression_constant = 32;

}  // namespace halfstep::plan
