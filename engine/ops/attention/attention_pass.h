#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "plan/lowering.h"

namespace halfstep::ops {

/// The passes of shaders/attention/attention.glsl.
enum class AttentionPass : std::uint8_t { forward, queries, keys };

/// The tensors of all passes; those that a pass does not have are not used by it.
struct AttentionTensors {
  plan::TensorId q = 0, k = 0, v = 0;
  std::optional<plan::TensorId> mask{}, padding{};  // see AttentionInputs; segments: as lower_segments() makes them
  plan::TensorId y = 0, largest = 0, inverse_total = 0;
  plan::TensorId dy = 0, delta = 0;
  plan::TensorId dq = 0, dk = 0, dv = 0;
};

/// Appends the dispatch that prepares segments {n, keys} for the passes, and returns what it makes.
plan::TensorId lower_segments(plan::Lowering& out, plan::TensorId segments);

/// Appends the dispatches of a pass: one, or several over parts of the other rows where a driver limits loop rounds.
void lower_attention(plan::Lowering& out, AttentionPass pass, const AttentionTensors& tensors,
                     const AttentionSettings& settings);

}  // namespace halfstep::ops
