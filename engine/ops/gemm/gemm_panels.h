#pragma once

#include "ops/gemm/gemm.h"

/// What the product's body of uniform loads asks of its operands: see shaders/gemm/gemm_uniform.glsl.
namespace halfstep::ops {

/// The layout of B that panels make of `operands`' own.
Operands with_panels(Operands operands);

/// Appends the dispatches that widen A to f32 where it is not, and lay B out in panels of 16 or 32 columns; returns the
/// product of those.
Gemm lower_panels(plan::Lowering& out, const Gemm& gemm, std::int64_t panel_columns);

}  // namespace halfstep::ops
