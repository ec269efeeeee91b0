#pragma once

#include "ops/gemm/gemm_kernels.h"

/// The operand layouts of the GEMM kernel with uniform loads: see shaders/gemm/gemm_uniform.glsl.
namespace halfstep::ops {

/// The layout of B in panels that corresponds to `operands`.
Operands with_panels(Operands operands);

/// Quads of A as planes {images, channels, height, width}: in f32, with as many zeros around as taps
/// reach beyond an image, so that a line of positions is read along a plane's line. A matrix {k, rows} is one image of
/// one line. 0 if A is neither images nor such a matrix, or there are several batches or groups.
std::int64_t plane_quads(const plan::Lowering& out, const Gemm& gemm);

/// Whether all taps of all positions of patches that are not in phases are pixels of A's images.
bool taps_inside(const Gemm& gemm);

/// Positions at either end of a line of them, at which some tap may be beside the image. 0 in phases, and where A is no
/// images.
std::int64_t margin(const Gemm& gemm);

/// Quads of A's images with as many zeros around as those taps reach beyond them. 0 if A is not such patches.
std::int64_t bordered_quads(const plan::Lowering& out, const Gemm& gemm);

/// Appends the dispatches that convert A to f32 if needed, or to planes, give its images borders, and pack B into
/// panels, as `kernel` reads them; returns the GEMM of those.
Gemm lower_panels(plan::Lowering& out, const Gemm& gemm, const GemmKernel& kernel);

}  // namespace halfstep::ops
