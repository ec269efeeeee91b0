#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/gemm/gemm.h"

/// The GEMM kernels, and which to prefer for a problem.
namespace halfstep::ops {

/// A kernel that computes tiles of C, or another way to compute all of it.
struct GemmKernel {
  std::string name;              ///< "tile64", "cooperative64.16x16x16.transposing"
  std::string shader;            ///< the variant: "gemm.row_row.f32.tile64"
  std::uint32_t local_size = 0;  ///< invocations of a workgroup, which computes one tile
  std::int64_t tile_rows = 0;
  std::int64_t tile_columns = 0;
  bool risky = false;    ///< see plan::Candidate
  bool texels = false;   ///< reads A and B through texel buffers
  bool uniform = false;  ///< reads them by address, in f32; the row that sums B's columns is a tile of its own
  plan::MatrixType matrices = plan::MatrixType::float16;  ///< see plan::Dispatch
  bool panels = false;                                    ///< reads B in panels of tile_columns, local_size at a time
  std::int64_t b_pitch = 0;      ///< quads of a row of B, which is not packed but read along its rows
  bool planes = false;           ///< reads A as planes: see ops/gemm/gemm_panels.h
  bool bordered = false;         ///< reads A's images with borders: likewise
  bool winograd = false;         ///< no kernel but several dispatches: see ops/gemm/winograd.h
  std::int64_t row_group = 0;    ///< a tile has rows of one group of that many; 0: all are one
  bool may_be_full = false;      ///< its last constant says that no workgroup is without a tile
  std::int64_t k_quads = 1;      ///< quads of k per iteration: parts are multiples of them
  std::int64_t moment_rows = 0;  ///< rows of C per set of column moments; 0: it cannot output them
  /// Loop rounds of an invocation: per quad of k, per segment that a part of k overlaps, and for the rest of its work,
  /// such as storing its part of the tile.
  std::int64_t quad_rounds = 1;
  std::int64_t segment_rounds = 1;
  std::int64_t other_rounds = 0;
  std::vector<std::uint32_t> constants = {};  ///< specialization constants after those that all kernels have
};

/// The least quads of k that are worth a part of their own where k is cut to occupy the device.
inline constexpr std::int64_t least_part_quads = 16;

/// The largest part, in quads of k and a multiple of GemmKernel::k_quads, that an invocation of `kernel` can compute
/// within the target's limit of loop rounds; 0 if none. `segment_quads` is the length of a segment.
std::int64_t most_part_quads(const plan::Target& target, const GemmKernel& kernel, std::int64_t segment_quads);
/// Loop rounds of an invocation for a part of `part_quads`.
std::int64_t part_rounds(const GemmKernel& kernel, std::int64_t part_quads, std::int64_t segment_quads);

/// Tiles that the rows of A make.
std::int64_t row_tiles(const GemmKernel& kernel, const Gemm& gemm);

/// The value of a shader's OPERANDS axis.
std::string_view name(Operands operands);

/// Whether the quads of A, or of B, lie along k.
bool a_lies_along_k(Operands operands);
bool b_lies_along_k(Operands operands);
/// Whether A is patches or pixels of images.
bool is_of_images(Operands operands);

/// What the choice of a kernel depends on.
struct Problem {
  Operands operands = Operands::row_row;
  DType dtype = DType::f32;  ///< of A and B
  bool float16_partials = false;
  bool float8 = false;    ///< see Gemm
  std::int64_t rows = 1;  ///< of A
  std::int64_t columns = 1;
  std::int64_t k = 1;  ///< of one segment
  std::int64_t segments = 1;
  std::int64_t batches = 1;
  std::int64_t operand_quads = 0;    ///< of the larger of A and B
  std::int64_t tap_rows = 1;         ///< pixels_row: channels; else all rows
  std::int64_t segments_in_row = 1;  ///< lines of positions in an image, or taps in a row of all
  std::int64_t plane_quads = 0;      ///< of A as planes (ops/gemm/gemm_panels.h); 0 if it cannot be
  std::int64_t bordered_quads = 0;   ///< patches: of A with borders, likewise; 0 if it cannot be
  bool taps_inside = false;          ///< patches: no tap of a position is outside the image
  std::int64_t winograd_tiles = 0;   ///< see ops/gemm/winograd.h
  std::int64_t row_taps = 0;         ///< patches: taps in a row, if these and positions step by a pixel; else 0
  std::int64_t row_positions = 0;    ///< patches: positions in a line
  std::int64_t a_apart = 1;          ///< quads from a pixel or row of A to the next position's
  std::int64_t b_apart = 1;          ///< likewise, of B
  std::int64_t margin = 0;           ///< of images: see ops/gemm/gemm_panels.h
};

/// The problem of `gemm`.
Problem problem(const plan::Lowering& out, const Gemm& gemm);

/// The kernels to consider for `problem` on `target`, the one expected to be fastest first; never empty. If
/// Target::gemm_kernels names some, only these, unless they do not support the problem. Throws Error if it names none
/// that the target has.
std::vector<GemmKernel> gemm_kernels(const plan::Target& target, const Problem& problem);

}  // namespace halfstep::ops
