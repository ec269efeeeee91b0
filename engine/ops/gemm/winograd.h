#pragma once

#include "ops/gemm/gemm_kernels.h"

/// Convolutions by Winograd's algorithm F(2x2, 3x3) (Lavin & Gray 2015, arXiv 1509.09308): the result is computed in
/// tiles of 2x2, each from 4x4 pixels d and 3x3 taps g, as A^T ((G g G^T) * (B^T d B)) A with an elementwise product.
/// Over all channels that is 16 matrix products of {tiles, in} and {in, out}: 2.25 times fewer multiplications, for
/// matrices that are written and read in addition. Results are about as far off as direct ones: transforms round, and
/// sums are nine times shorter (tests/ops/test_winograd.cpp).
namespace halfstep::ops {

/// The tiles of 2x2 results of the convolution that `gemm` is, or data gradient, if Winograd's algorithm computes it:
/// in f32, with 3x3 taps without strides, and with matrices that are not too large. 0: it does not.
std::int64_t winograd_tiles(const plan::Lowering& out, const Gemm& gemm);

/// Its matrix products.
Problem winograd_products(const Problem& problem);

/// The bytes that its transforms read and write.
double winograd_bytes(const Problem& problem);

/// It as a way to compute `problem`, which has Problem::winograd_tiles.
GemmKernel winograd_kernel();

/// Whether it is faster than any other kernel of a software driver: if each byte that its transforms read and write
/// saves so many flops as were measured to be worth it (tests/bench/RESULTS.md).
bool winograd_pays(const plan::Target& target, const Problem& problem);

/// Appends the dispatches of `gemm`, which has winograd_tiles.
void lower_winograd(plan::Lowering& out, const Gemm& gemm);

}  // namespace halfstep::ops
