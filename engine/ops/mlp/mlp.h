#pragma once

#include <halfstep/ops.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ops/elementwise/unary.h"
#include "plan/lowering.h"

/// Networks of dense layers as one operator.
namespace halfstep::ops {

/// What a network has after each layer but the last: an elementwise operator.
struct MlpActivation {
  std::shared_ptr<const graph::Operator> op;  ///< null for none
  UnaryFormulas formulas;
};

/// The operands of a network, and its result.
struct MlpTensors {
  plan::TensorId x = 0;
  std::vector<plan::TensorId> weights{};
  std::vector<std::optional<plan::TensorId>> biases{};  ///< of each layer
  plan::TensorId y = 0;
};

/// The most hidden layers that are computed as one operator, and the widest.
inline constexpr std::int64_t most_mlp_width = 128;
inline constexpr std::size_t most_mlp_hidden = 8;

/// Whether the target has a kernel for the network that is faster than its layers one by one.
bool has_mlp_kernel(const plan::Lowering& out, const MlpActivation& activation, const MlpTensors& tensors);
/// Appends the dispatches that compute y in one kernel.
void lower_mlp(plan::Lowering& out, const MlpActivation& activation, const MlpTensors& tensors);

}  // namespace halfstep::ops
