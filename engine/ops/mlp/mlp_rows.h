#pragma once

#include "ops/mlp/mlp_form.h"
#include "plan/lowering.h"

/// shaders/mlp/mlp_rows.comp, for software drivers that load what all invocations read from one address only once.
namespace halfstep::ops {

/// Its name among mlp_kernels().
inline constexpr const char* mlp_rows_name = "rows";

/// Whether the target has it and it is faster than layers one by one.
bool has_mlp_rows(const plan::Lowering& out, const MlpForm& form, const MlpExtents& extents);

/// Appends the dispatches that compute y of a network's inputs.
void lower_mlp_rows(plan::Lowering& out, const MlpForm& form, std::span<const plan::TensorId> inputs, plan::TensorId y);

}  // namespace halfstep::ops
