#pragma once

#include <halfstep/ops.h>

#include <cstdint>
#include <optional>

#include "plan/lowering.h"

/// The GEMM behind matmul, linear and conv2d: shaders/gemm/gemm.comp.
namespace halfstep::ops {

/// The memory layout of A (rows, k) and B (k, columns); named as in the shader's OPERANDS axis.
enum class Operands : std::uint8_t {
  row_row,      ///< {rows, k} and {k, columns}
  row_col,      ///< {rows, k} and {columns, k}
  col_row,      ///< {k, rows} and {k, columns}
  col_col,      ///< {k, rows} and {columns, k}
  patches_row,  ///< A's rows are image patches, a segment of k is a tap; B is {segments, k, columns}
  patches_col,  ///< the same with B {segments, columns, k}
  pixels_row,   ///< A is such patches transposed, a segment is a line of positions; B is {segments, k, columns}
  planes_row,   ///< the same with A as planes {images, channels, height, width}: see ops/gemm/gemm_panels.h
};

/// The geometry of a convolution's patches: tap t of position p reads the pixel (p step + t tap_step + offset) /
/// divisor of the image, or zero if the division has a remainder or the pixel is outside the image. All are {height,
/// width}; step or divisor is 1. With a divisor, A's rows are in phases: first the positions whose remainders by it are
/// {0, 0}, then those of {0, 1}, and so on. Each phase has as many rows as the first, and needs only some of the taps.
struct Patches {
  Pair grid;   ///< number of positions; with a divisor, of a phase
  Pair image;  ///< number of pixels
  Pair step{1, 1};
  Pair tap_step{1, 1};
  Pair offset{0, 0};
  Pair divisor{1, 1};
  Pair result{};  ///< with a divisor, extents of C's images
  std::int64_t kernel_width = 1;
  std::int64_t channels =
      0;  ///< where A's rows are (tap, channel): pixels_row, with channels in whole quads, and planes_row

  bool divided() const { return divisor != Pair{1, 1}; }
  /// How many there are, in each axis: fewer than the divisor, if there are fewer positions.
  Pair phases() const;
  /// From one tap of a phase to the next.
  Pair tap_stride() const;
};

/// C = A B (+ bias in every row), for `batches` of them. Pitches and batch strides are in quads. If A is stored as {k,
/// rows}, the GEMM can also output the sums of B's columns: a bias gradient, computed as one more row of the weight
/// gradient.
struct Gemm {
  Operands operands = Operands::row_row;
  plan::TensorId a{};
  plan::TensorId b{};
  plan::TensorId c{};
  std::optional<plan::TensorId> bias{};         ///< {columns of all batches}
  std::optional<plan::TensorId> column_sums{};  ///< likewise; not together with a bias
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t k = 1;  ///< of one segment
  std::int64_t segments = 1;
  std::int64_t batches = 1;
  std::int64_t a_batch = 0;
  std::int64_t b_batch = 0;
  std::int64_t c_batch = 0;
  DType partials = DType::f32;  ///< the accumulator type: with f16, partial sums are rounded
  bool float8 = false;          ///< A and B are f16 that hold numbers of 8 bits: see ops/gemm/float8.h
  Patches patches{};
};

/// Segments of the tiles that have most: a phase's, or all.
std::int64_t tile_segments(const Gemm& gemm);

/// Rows of A that the kernel computes, including padding and the row of ones if it sums columns.
std::int64_t rows_of_a(const Gemm& gemm);

/// Appends the dispatch that sums the parts {n, ...to} into `to`, in order; `partials` as in Gemm.
void lower_sum_of_parts(plan::Lowering& out, plan::TensorId parts, plan::TensorId to, DType partials);

/// Appends the dispatches of a GEMM: one, or two if k is split to occupy the device. If the kernel cannot output column
/// sums, adds dispatches for them. It also outputs the moments of the columns of C where they are asked for
/// (plan::Lowering::moments_wanted) and the kernel can.
void lower_gemm(plan::Lowering& out, const Gemm& gemm);

}  // namespace halfstep::ops
