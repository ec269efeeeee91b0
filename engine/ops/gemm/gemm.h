#pragma once

#include <halfstep/ops.h>

#include <cstdint>
#include <optional>

#include "plan/lowering.h"

/// The one matrix product that matmul, linear and conv2d come down to: shaders/gemm/gemm.comp.
namespace halfstep::ops {

/// How A (rows, k) and B (k, columns) lie in memory; named as the shader's OPERANDS axis.
enum class Operands : std::uint8_t {
  row_row,      ///< {rows, k} and {k, columns}
  row_col,      ///< {rows, k} and {columns, k}
  col_row,      ///< {k, rows} and {k, columns}
  col_col,      ///< {k, rows} and {columns, k}
  patches_row,  ///< A's rows are patches of images, a segment of k is a tap; B is {segments, k, columns}
  patches_col,  ///< the same with B {segments, columns, k}
  pixels_row,   ///< A is such patches transposed, a segment is a line of positions; B is {segments, k, columns}
};

/// Where a convolution's patches lie: tap t of position p reads the pixel (p step + t tap_step + offset) / divisor of
/// the image, or zero where that leaves a remainder or the image. All are {height, width}; step or divisor is 1.
struct Patches {
  Pair grid;   ///< how many positions
  Pair image;  ///< how many pixels
  Pair step{1, 1};
  Pair tap_step{1, 1};
  Pair offset{0, 0};
  Pair divisor{1, 1};
  std::int64_t kernel_width = 1;
  std::int64_t channels = 0;  ///< pixels_row only, where A's rows are (tap, channel) with channels in whole quads

  bool divided() const { return divisor != Pair{1, 1}; }
};

/// C = A B (+ bias in every row), for `batches` of them. Pitches and batch strides are in quads.
/// The sums of B's columns can be had along with it where A lies {k, rows}: the gradient of a bias, which a weight's
/// takes one row more for.
struct Gemm {
  Operands operands = Operands::row_row;
  plan::TensorId a{};
  plan::TensorId b{};
  plan::TensorId c{};
  std::optional<plan::TensorId> bias{};         ///< {columns of all batches}
  std::optional<plan::TensorId> column_sums{};  ///< likewise; takes no bias beside it
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t k = 1;  ///< of one segment
  std::int64_t segments = 1;
  std::int64_t batches = 1;
  std::int64_t a_batch = 0;
  std::int64_t b_batch = 0;
  std::int64_t c_batch = 0;
  DType partials = DType::f32;  ///< of the sums: with f16 they are rounded as they are made
  Patches patches{};
};

/// Rows of A that a product works with, padding and a row of ones among them where it sums columns.
std::int64_t rows_of_a(const Gemm& gemm);

/// Appends the dispatch that adds up parts {n, ...to} of `to`, in order; `partials` as Gemm's.
void lower_sum_of_parts(plan::Lowering& out, plan::TensorId parts, plan::TensorId to, DType partials);

/// Appends the dispatches of a product: one, or two where k is cut into parts to occupy the device; and where sums of
/// columns cannot be had along with it, theirs.
void lower_gemm(plan::Lowering& out, const Gemm& gemm);

}  // namespace halfstep::ops
