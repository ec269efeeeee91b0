#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ops/mlp/mlp_form.h"
#include "ops/mlp/mlp_kernels.h"

/// The kernels of shaders/mlp/mlp_tile.glsl, for GPUs.
namespace halfstep::ops {

/// The storage buffers of a kernel.
inline constexpr std::uint32_t mlp_storage_buffers = 19;

/// At the most, the bytes of all weights as they are packed.
std::uint64_t mlp_packed_bytes(const MlpExtents& extents);

/// The operands of a network.
struct MlpForward {
  plan::TensorId x = 0;
  std::vector<MlpLayer<plan::TensorId>> layers;
  plan::TensorId y = 0;
  /// The results of hidden layers, and the activations' arguments where the form keeps them; empty if nothing is kept.
  std::vector<plan::TensorId> kept;
};
void lower_mlp_forward(plan::Lowering& out, const MlpForm& form, const MlpTile& tile, const MlpForward& operands);

/// The operands of its gradients.
struct MlpBackward {
  std::vector<plan::TensorId> weights;
  std::vector<plan::TensorId> kept;  ///< of each hidden layer, what the activation's gradient depends on
  plan::TensorId dy = 0;
  std::vector<plan::TensorId> gradients;  ///< of each hidden layer, before its activation
  std::optional<plan::TensorId> dx;
};
void lower_mlp_backward(plan::Lowering& out, const MlpForm& form, const MlpTile& tile, const MlpBackward& operands);

}  // namespace halfstep::ops
