#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plan/target.h"
#include "reference/array.h"

/// Operators against their double-precision references, in f32, f16 and bf16, for the targets of harness/device.h. All
/// memory starts out as 0xFF bytes, bytes between tensors must stay so, and the elements past the last column must be
/// zero; a second run must give the same bits.
namespace halfstep::testing {

enum class Kind : std::uint8_t {
  floating,  ///< has the precision that is checked, and a gradient
  labels,    ///< u32
  state,     ///< f32 in every precision, without a gradient
};

/// One input.
struct Operand {
  reference::Array values;
  Kind kind = Kind::floating;
};

struct Check {
  std::string name;
  std::function<Tensor(std::span<const Tensor>)> build;
  std::vector<Operand> inputs;
  reference::Reference reference;
  /// The gradients for the floating inputs, from all inputs and the gradient of the result; central differences of the
  /// reference where empty.
  std::function<std::vector<reference::Array>(std::span<const reference::Array>, const reference::Array&)> gradients =
      {};
  /// Error of the f32 arithmetic, relative to the largest result: 2^-23 for each rounding of a short computation.
  double arithmetic = 1e-6;
  /// Magnitude of the terms that the result is a sum of, if they are larger than it; errors are then relative to this.
  /// A check fails whose errors may be so large that zeros in place of all results would be right.
  double magnitude = 0;
  /// How often a value is rounded to a narrow type on its way to the result.
  int roundings = 1;
  std::vector<DType> dtypes{DType::f32, DType::f16, DType::bf16};
  /// What it is lowered for; those of harness/device.h where empty.
  std::vector<plan::Target> targets = {};
};

/// What one check runs in.
struct Variant {
  plan::Target target;
  DType dtype = DType::f32;
};

/// Every variant whose kernels differ from those of the others.
std::vector<Variant> variants();

/// Checks the operator's result. On a software driver, which takes far longer to compile kernels than to run them, each
/// check after a test case's first runs in a third of its variants, in turns; HALFSTEP_EVERY_VARIANT=1 runs all.
void check_operator(const Check& check);

/// Checks the gradients for all floating inputs, of the sum of the result times random weights (of the result itself if
/// it is a scalar), against central differences of the reference.
void check_gradient(const Check& check);

/// What `got` may differ from `want`: the f32 arithmetic's error and, in a narrow type, half a unit in the last place
/// of the result for its rounding, and as much of the largest result for each rounding before.
double tolerance(const Check& check, DType dtype, double want, double largest);

}  // namespace halfstep::testing
