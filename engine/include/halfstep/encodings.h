#pragma once

#include <halfstep/tensor.h>

/// Operators that encode a few coordinates as many features, for small networks that learn a function of a position or
/// a direction: pictures, shapes, light. Coordinates are f32 {n, d} in every precision, since f16 would round them to a
/// grid of 2048 points.
namespace halfstep {

/// A multiresolution grid: Mueller et al. 2022, whose names these are.
struct HashGridOptions {
  std::int64_t levels = 16;             ///< 1 to 24
  std::int64_t features = 2;            ///< of each vertex: 1, 2, 4 or 8
  std::int64_t log2_hashmap_size = 19;  ///< a level has at most 2 to this power vertices' features; 4 to 24
  std::int64_t base_resolution = 16;    ///< the first level's cells along each axis
  double per_level_scale = 1.5;         ///< every other level has this times as many, rounded down; at least 1
};
/// The number of elements of a hash_grid's table for coordinates {n, dimensions}.
HALFSTEP_API std::int64_t hash_grid_size(std::int64_t dimensions, const HashGridOptions& options = {});
/// For each position {n, d} in the unit cube, d from 1 to 4, the features of each level, interpolated linearly between
/// the 2^d vertices of the cell around it: {n, levels * features} in the type of the table. Coordinates are clamped to
/// [0, 1]; NaN gives NaN. The table {hash_grid_size(d, options)} has a level's features one after another: of all
/// vertices, the first axis fastest, where 2^log2_hashmap_size suffice, otherwise by a hash of the vertex, so that
/// vertices share them. The table's gradient is summed in 64-bit fixed point: in any order, the same bits.
HALFSTEP_API Tensor hash_grid(Tensor positions, Tensor table, const HashGridOptions& options = {});

/// For each coordinate x of {n, d}, d from 1 to 4: sin(2^i pi x) and cos(2^i pi x) for i from 0 up to `octaves`, at
/// most 24: f32 {n, d * octaves * 2}. Mildenhall et al. 2020.
HALFSTEP_API Tensor frequency_encoding(Tensor coordinates, std::int64_t octaves = 10);
/// For each coordinate of {n, d}, d from 1 to 4, from 0 to 1: how much of a bell-shaped kernel around it is in each of
/// `bins` equal parts of [0, 1], at most 256: f32 {n, d * bins}. Mueller et al. 2019, with the kernel 15/16 (1 -
/// u^2)^2, u in parts, in place of a Gaussian.
HALFSTEP_API Tensor one_blob_encoding(Tensor coordinates, std::int64_t bins = 32);
/// The real spherical harmonics of `degrees` degrees, from 0 on, at most 8, of directions {n, 3} of length 1: f32
/// {n, degrees^2}. Number l^2 + l + m is of degree l and order m and has the factor (-1)^m (Condon and Shortley).
HALFSTEP_API Tensor spherical_harmonics(Tensor directions, std::int64_t degrees = 4);

}  // namespace halfstep
