#include "ops/kernel.h"

#include <fmt/format.h>

#include <limits>

#include "base/beyond_limit.h"

namespace halfstep::ops {

std::uint32_t index32(const plan::Lowering& out, std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
    fail_beyond_limit(out.label(), fmt::format("expected sizes below 2^32, got {}", value), "use a smaller batch");
  }
  return static_cast<std::uint32_t>(value);
}

std::string variant(const plan::Lowering& out, std::string_view shader, DType dtype) {
  return fmt::format("{}.{}", shader, plan::storage(out.target(), dtype));
}

plan::Expression result_expression(const plan::Lowering& out, plan::TensorId result, std::uint32_t operand,
                                   std::uint32_t first_argument) {
  const TensorType type = out.type(result);
  plan::Expression expression;
  expression.kernel = plan::Expression::Kernel::before;
  expression.layout = plan::layout(type.shape);
  expression.result = operand;
  expression.first_argument = first_argument;
  expression.storage = type.dtype;
  return expression;
}

}  // namespace halfstep::ops
