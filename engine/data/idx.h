#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace halfstep::data {

/// The contents of an IDX file of unsigned bytes.
struct IdxArray {
  Shape shape;
  std::vector<std::uint8_t> bytes;
};

/// Reads a whole IDX file of unsigned bytes, gzipped or not, whose rank is from `least_rank` to `most_rank`. The
/// format: two zero bytes, the element type (8: unsigned byte), the rank, the extents as big-endian 32-bit words, then
/// the elements, row-major. Throws Error that names the file if it deviates from this in any way.
IdxArray read_idx_array(const std::filesystem::path& path, int least_rank, int most_rank);

}  // namespace halfstep::data
