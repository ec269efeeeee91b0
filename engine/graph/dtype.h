#pragma once

#include <halfstep/precision.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// The element types: one row each in dtype.cpp, and for those that are stored in floating point one file each in
/// shaders/storage/. Whoever needs to know something of a type asks its row.
namespace halfstep::graph {

/// How a narrow type, one of 16 bits, stands for numbers.
struct Narrow {
  double largest;          ///< finite
  double smallest_normal;  ///< positive
  double unit;             ///< rounding to nearest changes a normal number by no more than this, relative to it
  std::uint16_t (*bits_of)(float value);  ///< the nearest, ties to even, as bits; the same as its shaders give
  float (*value_of)(std::uint16_t bits);  ///< exact
};

struct TypeInfo {
  DType dtype;
  std::string_view name;   ///< "f16"
  std::string_view saved;  ///< its name in safetensors files: "F16"
  std::int64_t bytes;
  bool floating;
  const Narrow* narrow;    ///< null where it has 32 bits
  std::string_view words;  ///< the value of a shader's STORAGE axis where it is read in 32-bit words
  bool elements16;         ///< whether there are shaders too, by its own name, that read it in 16-bit elements
};

/// Of every type.
std::span<const TypeInfo> all_types();
const TypeInfo& info(DType dtype);

/// Null where there is none that safetensors files call `saved`.
const TypeInfo* find_saved(std::string_view saved);

/// The bits of `value`, to nearest; what the type does not reach is as `overflow` says.
std::uint16_t bits_of(const Narrow& narrow, float value, Overflow overflow);
/// `value` as the type stores it, to nearest; f32 stores any as it is.
float stored(DType dtype, float value, Overflow overflow = Overflow::infinity);

/// "f32 or f16": what an operator may work in.
std::string floating_names();
/// "f16": those of them that have 16 bits.
std::string narrow_names();

}  // namespace halfstep::graph
