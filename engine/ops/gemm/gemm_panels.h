#pragma once

#include "ops/gemm/gemm.h"

/// The operand layouts of the GEMM kernel with uniform loads: see shaders/gemm/gemm_uniform.glsl.
namespace halfstep::ops {

/// The layout of B in panels that corresponds to `operands`.
Operands with_panels(Operands operands);

/// Appends the dispatches that convert A to f32 if needed, and pack B into panels of `panel_columns`, `lanes` at a
/// time; returns the GEMM of those.
Gemm lower_panels(plan::Lowering& out, const Gemm& gemm, std::int64_t panel_columns, std::uint32_t lanes);

}  // namespace halfstep::ops
