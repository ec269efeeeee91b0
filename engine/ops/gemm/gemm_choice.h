#pragma once

#include <string_view>
#include <vector>

#include "ops/gemm/gemm_kernels.h"
#include "plan/choice.h"

/// The GEMM's kernels as a choice that can be measured, and checks of them.
namespace halfstep::ops {

/// The choice among the kernels `kernels` for a GEMM.
plan::Choice gemm_choice(const plan::Lowering& out, const Gemm& gemm, const Problem& problem,
                         const std::vector<GemmKernel>& kernels);

/// Small products of a choice's kind with their expected results, crossing the edges of every tile: one of integers,
/// which every kernel and accumulator type computes exactly, and one of random numbers. In f16 also two of integers
/// that are scaled so that one operand is subnormal, as small gradients are: instructions for dot products and matrices
/// may take such numbers for 0 (AMD's MI200 does: PyTorch's notes on numerical accuracy), and training would learn
/// nothing from them. In f32 also two convolutions that Winograd's algorithm computes. Throws Error if there is no such
/// kind.
std::vector<plan::Trial> gemm_checks(std::string_view kind);

}  // namespace halfstep::ops
