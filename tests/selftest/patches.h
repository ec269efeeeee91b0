#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

/// Changes of SPIR-V that imitate faults of drivers.
namespace halfstep::selftest {

using Patch = std::function<std::vector<std::uint32_t>(const std::vector<std::uint32_t>&)>;

/// Opcodes of the SPIR-V specification, version 1.6, section 3.
namespace op {
enum : std::uint32_t {
  ext_inst_import = 11,
  ext_inst = 12,
  type_int = 21,
  type_pointer = 32,
  constant = 43,
  spec_constant_true = 48,
  spec_constant_false = 49,
  spec_constant = 50,
  variable = 59,
  load = 61,
  store = 62,
  access_chain = 65,
  in_bounds_access_chain = 66,
  decorate = 71,
  member_decorate = 72,
  composite_construct = 80,
  composite_extract = 81,
  copy_object = 83,
  bitcast = 124,
  i_mul = 132,
  f_negate = 127,
  i_add = 128,
  f_add = 129,
  f_sub = 131,
  f_mul = 133,
  u_div = 134,
  s_div = 135,
  f_div = 136,
  f_ord_less = 184,
  f_ord_greater = 186,
  shift_right_logical = 194,
  shift_right_arithmetic = 195,
  bit_or = 197,
  bit_and = 199,
  control_barrier = 224,
  memory_barrier = 225,
  atomic_exchange = 229,
  atomic_i_add = 234,
  atomic_u_min = 237,
  atomic_u_max = 239,
  function = 54,
  group_i_add = 349,
  group_u_max = 356,
  group_shuffle = 345,
  group_shuffle_xor = 346,
  cooperative_matrix_load = 4457,
  cooperative_matrix_store = 4458,
  cooperative_matrix_mul_add = 4459,
};
}  // namespace op

/// Functions of GLSL.std.450.
namespace ext {
enum : std::uint32_t {
  round_even = 2,
  trunc = 3,
  floor = 8,
  ceil = 9,
  sin = 13,
  cos = 14,
  sinh = 19,
  cosh = 20,
  tanh = 21,
  exp = 27,
  log = 28,
  exp2 = 29,
  log2 = 30,
  sqrt = 31,
  inverse_sqrt = 32,
  f_min = 37,
  f_max = 40,
  fma = 50,
  unpack_half_2x16 = 62,
};
}  // namespace ext

/// Each `from` is a `to`, of the same operands.
Patch swapped(std::uint32_t from, std::uint32_t to);
/// Each call of a GLSL function is one of another.
Patch other_function(std::uint32_t from, std::uint32_t to);
/// An operation of one operand gives its operand.
Patch removed_unary(std::uint32_t op);
/// 32-bit integers lose bits when they are stored.
Patch stores_masked(std::uint32_t mask);
/// The last index of what is stored is larger by this.
Patch index_offset(std::uint32_t offset);
Patch without_stores();
/// Nothing is stored through addresses.
Patch without_stores_by_address();
Patch without_barriers();
/// fma gives the product alone.
Patch fma_without_sum();
/// Denormal f16 are 0 where words of two are unpacked.
Patch denormal_halves_flushed();
/// tanh is sinh over cosh.
Patch tanh_by_exponentials();
/// A 32-bit constant is another.
Patch other_constant(std::uint32_t from, std::uint32_t to);
/// Loops end after so many rounds in all.
Patch loops_cut(std::uint32_t rounds);
/// Push constants are read so many bytes further.
Patch push_shifted(std::uint32_t bytes);
Patch without_specialization();
/// Atomic sums are loads and stores.
Patch atomics_as_stores();
/// The first of each two atomic exchanges does nothing: data that comes later than its flag.
Patch data_stored_late();
/// A component that is taken of a vector of three is the first.
Patch component_zero(std::uint32_t component);
/// A 64-bit product loses what this mask of its lower half lacks, and its upper half.
Patch wide_products_masked(std::uint32_t mask);
/// A fragment of a matrix, the `nth` that is loaded, from 0, or the one that is stored, begins so many elements later.
Patch fragment_moved(std::size_t nth, std::uint32_t elements);
Patch stored_fragment_moved(std::uint32_t elements);
/// The `nth` fragment that is loaded lies column by column.
Patch fragment_by_columns(std::size_t nth);
/// Its rows are as far from each other as those of the first.
Patch fragment_stride(std::size_t nth);
/// Each product of matrices is added to what the first is added to.
Patch matrix_sums_lost();
/// Products of matrices are of unsigned integers.
Patch matrix_signs_lost();
/// The sum of a product and another number is what an fma gives, on drivers whose fma rounds twice too.
Patch sums_contracted();
/// Vectors that are made of two parts have them in the other order.
Patch pairs_swapped();
/// Twice what the driver says of a builtin of one number.
Patch builtin_doubled(std::uint32_t builtin);
/// Specialization constants of 32 bits and switches, by their numbers, have these values whatever a driver is given.
Patch constants_fixed(const std::map<std::uint32_t, std::uint32_t>& values);
/// Scans of one kind (GroupOperation) are of another.
Patch scan_kind(std::uint32_t from, std::uint32_t to);

}  // namespace halfstep::selftest
