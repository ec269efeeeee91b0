#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

namespace halfstep::plan {

/// a / b rounded up, for nonnegative numbers.
constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The memory layout of a tensor: rows of the last axis, each padded with zeros to a multiple of four elements. So
/// every row starts on a vec4, any shape is read and written four elements at a time, and two invocations never share a
/// 32-bit word of packed f16.
struct Layout {
  std::int64_t rows = 1;     ///< product of all axes but the last
  std::int64_t columns = 1;  ///< extent of the last axis; 1 for a scalar
  std::int64_t pitch = 4;    ///< elements from one row to the next

  std::int64_t quads_per_row() const { return pitch / 4; }
  std::int64_t quads() const { return rows * pitch / 4; }
  std::int64_t padded_elements() const { return rows * pitch; }
};

Layout layout(const Shape& shape);

/// The size of a tensor in memory, including padding.
std::uint64_t byte_size(const TensorType& type);

}  // namespace halfstep::plan
