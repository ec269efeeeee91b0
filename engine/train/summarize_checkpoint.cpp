#include <halfstep/checkpoint.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "io/safetensors.h"

namespace halfstep {
namespace {

template <typename Element>
double number_at(const std::byte* place) {
  Element value;
  std::memcpy(&value, place, sizeof value);
  return static_cast<double>(value);
}

/// A binary floating number of a sign, some exponent bits and some mantissa bits.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool infinities = true;  ///< without, the largest exponent is an ordinary one, but for the NaN of all ones
};

double decode(std::uint32_t bits, const Format& format) {
  const std::uint32_t mantissas = 1U << format.mantissa_bits;
  const std::uint32_t exponents = 1U << format.exponent_bits;
  const std::uint32_t mantissa = bits % mantissas;
  const std::uint32_t exponent = bits / mantissas % exponents;
  const double sign = (bits / mantissas / exponents & 1U) != 0 ? -1 : 1;
  if (exponent == exponents - 1) {
    const bool nan = format.infinities ? mantissa != 0 : mantissa == mantissas - 1;
    if (nan) return std::nan("");
    if (format.infinities) return sign * std::numeric_limits<double>::infinity();
  }
  const int bias = static_cast<int>(exponents / 2) - 1;
  const bool subnormal = exponent == 0;
  return sign * std::ldexp(subnormal ? mantissa : mantissas + mantissa,
                           (subnormal ? 1 : static_cast<int>(exponent)) - bias - format.mantissa_bits);
}

template <typename Bits>
double float_at(const std::byte* place, const Format& format) {
  Bits bits;
  std::memcpy(&bits, place, sizeof bits);
  return decode(bits, format);
}

using Read = double (*)(const std::byte*);

/// What reads one element; every type of the format has its own.
Read reader(std::string_view dtype) {
  struct Type {
    std::string_view name;
    Read read;
  };
  constexpr auto e4m3 = [](const std::byte* place) { return float_at<std::uint8_t>(place, {4, 3, false}); };
  constexpr auto e5m2 = [](const std::byte* place) { return float_at<std::uint8_t>(place, {5, 2}); };
  constexpr auto f16 = [](const std::byte* place) { return float_at<std::uint16_t>(place, {5, 10}); };
  constexpr auto bf16 = [](const std::byte* place) { return float_at<std::uint16_t>(place, {8, 7}); };
  static const Type types[] = {{"BOOL", number_at<std::uint8_t>},
                               {"U8", number_at<std::uint8_t>},
                               {"I8", number_at<std::int8_t>},
                               {"F8_E4M3", e4m3},
                               {"F8_E5M2", e5m2},
                               {"U16", number_at<std::uint16_t>},
                               {"I16", number_at<std::int16_t>},
                               {"F16", f16},
                               {"BF16", bf16},
                               {"U32", number_at<std::uint32_t>},
                               {"I32", number_at<std::int32_t>},
                               {"F32", number_at<float>},
                               {"U64", number_at<std::uint64_t>},
                               {"I64", number_at<std::int64_t>},
                               {"F64", number_at<double>}};
  return std::ranges::find(types, dtype, &Type::name)->read;
}

TensorSummary summarize(const io::StoredTensor& tensor) {
  TensorSummary summary;
  summary.name = tensor.name;
  summary.dtype = tensor.dtype;
  summary.shape = tensor.shape;
  const Read read = reader(tensor.dtype);
  const std::size_t element = io::stored_bytes(tensor.dtype);
  for (std::size_t offset = 0; offset < tensor.data.size(); offset += element) {
    const double value = read(tensor.data.data() + offset);
    if (!std::isfinite(value)) {
      ++summary.not_finite;
    } else {
      // fmin and fmax take the other number where one is NaN.
      summary.minimum = std::fmin(summary.minimum, value);
      summary.maximum = std::fmax(summary.maximum, value);
    }
  }
  return summary;
}

}  // namespace

CheckpointSummary summarize_checkpoint(const std::filesystem::path& path) {
  static_assert(std::endian::native == std::endian::little, "the format is little-endian");
  const io::SafetensorsFile file(path);
  CheckpointSummary summary;
  summary.metadata = file.metadata();
  for (const io::StoredTensor& tensor : file.tensors()) summary.tensors.push_back(summarize(tensor));
  return summary;
}

}  // namespace halfstep
