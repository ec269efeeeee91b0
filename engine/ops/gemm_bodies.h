#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/gemm.h"

/// The kernels that a matrix product can be computed by, and which to prefer where.
namespace halfstep::ops {

/// A way of shaders/ops/gemm.comp to compute tiles of C.
struct Body {
  std::string_view name;         ///< its value on the shader's BODY axis
  std::uint32_t local_size = 0;  ///< invocations of a workgroup, which computes one tile
  std::int64_t tile_rows = 0;
  std::int64_t tile_columns = 0;
  bool texels = false;  ///< reads A and B through texel buffers
};

/// What the choice of a body depends on.
struct Problem {
  Operands operands = Operands::row_row;
  DType dtype = DType::f32;  ///< of A and B
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t k = 1;  ///< of all segments
  std::int64_t batches = 1;
  std::int64_t operand_quads = 0;  ///< of the larger of A and B
};

/// The problem that `gemm` is.
Problem problem(const plan::Lowering& out, const Gemm& gemm);

/// The bodies that compute `problem` on `target`, the one expected to be fastest first; never empty.
std::vector<Body> bodies(const plan::Target& target, const Problem& problem);

}  // namespace halfstep::ops
