#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ops/mlp/mlp_form.h"
#include "plan/lowering.h"

/// What the kernels of shaders/mlp/ read beside tensors: all weights in one place, and the activation as steps.
namespace halfstep::ops {

/// How a layer is packed, in quads: the bias, or zeros, if the kernel reads it; then the matrix, with zeros past its
/// end.
struct PackedLayer {
  MlpLayer<plan::TensorId> layer;
  std::int64_t bias_quads = 0;
  std::int64_t rows = 0;   ///< of the matrix as it is packed
  std::int64_t quads = 0;  ///< of such a row

  std::int64_t all_quads() const { return bias_quads + rows * quads; }
};

enum class PackedAs : std::uint8_t {
  wide,   ///< f32
  stored  ///< the type of the weights
};

/// Appends the dispatches that pack layers one after the other, each as its weights {k, n} are or transposed.
plan::TensorId lower_pack(plan::Lowering& out, std::span<const PackedLayer> layers, bool transposed, PackedAs as);

/// The specialization constants of mlp_activation.glsl, from 1 on, for a formula of one or two numbers. Nothing if it
/// has too many steps.
std::optional<std::vector<std::uint32_t>> activation_constants(const Formula& formula, std::size_t arguments);

}  // namespace halfstep::ops
