#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// The types of VK_KHR_cooperative_matrix. Declared here because Vulkan headers before 1.3.255 lack it.
namespace halfstep::selftest {

/// VkComponentTypeKHR.
enum class Component : std::int32_t {
  f16 = 0,
  f32 = 1,
  f64 = 2,
  s8 = 3,
  s16 = 4,
  s32 = 5,
  s64 = 6,
  u8 = 7,
  u16 = 8,
  u32 = 9,
  u64 = 10,
  bf16 = 1000141000,
  e4m3 = 1000491002,
  e5m2 = 1000491003,
};

/// "f16"; "type 1000491000" for one that is not listed.
std::string name(Component component);
/// Whether the self-test has kernels for it.
bool is_tested(Component component);
bool is_integer(Component component);
bool is_signed(Component component);
/// Whether it is a float of 8 bits.
bool is_float8(Component component);
std::uint32_t bytes(Component component);

/// Up to which magnitude it has every whole number.
double largest_whole(Component component);
/// The bits of a number that it has; integers wrap around.
std::uint64_t bits(Component component, double number);
double number(Component component, std::uint64_t bits);

/// A product that a device reports: {rows, k} of `a` times {k, columns} of `b`, plus `c`.
struct MatrixProduct {
  std::uint32_t rows, columns, k;
  Component a, b, c, result;
  bool saturating;
  std::int32_t scope;

  bool operator==(const MatrixProduct&) const = default;
};

/// "16x16x16 f16 f16 f32 f32".
std::string name(const MatrixProduct& product);

/// Whether each of a product's matrices lies in memory column by column.
struct MatrixLayouts {
  bool a = false;
  bool b = false;
  bool c = false;       ///< also of the result
  bool shared = false;  ///< they pass through shared memory
};

/// The push constants of a kernel of matrix_module(): in elements of each matrix.
struct MatrixPlaces {
  std::uint32_t a, second_a, b, second_b, c, result;          ///< where each begins
  std::uint32_t a_stride, b_stride, c_stride, result_stride;  ///< from one row or column to the next
};

/// The elements of each matrix that pass through shared memory.
constexpr std::uint32_t shared_elements = 1024;

/// SPIR-V of a kernel for one subgroup: result = a b + second_a second_b + c, or without the second product where c and
/// the result are of different types. Bindings 0 to 3 are a, b, c and the result. Written here, since glslang knows
/// these types only from 12.3 on, and some of them not at all.
std::vector<std::uint32_t> matrix_module(const MatrixProduct& product, const MatrixLayouts& layouts);

/// Whether such a kernel computes both products.
bool has_two_products(const MatrixProduct& product);

}  // namespace halfstep::selftest
