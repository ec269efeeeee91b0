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

/// Which numbers of a format are not finite.
enum class Specials : std::uint8_t {
  ieee,        ///< all of the largest exponent: infinities and NaN
  all_ones,    ///< NaN alone, which is all ones beside the sign
  minus_zero,  ///< NaN alone, in the place of -0; the exponent's bias is one more than elsewhere
};

/// A binary floating number of a sign, some exponent bits and some mantissa bits.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  Specials specials = Specials::ieee;
};

double decode(std::uint32_t bits, const Format& format) {
  const std::uint32_t mantissas = 1U << format.mantissa_bits;
  const std::uint32_t exponents = 1U << format.exponent_bits;
  const std::uint32_t mantissa = bits % mantissas;
  const std::uint32_t exponent = bits / mantissas % exponents;
  const double sign = (bits / mantissas / exponents & 1U) != 0 ? -1 : 1;
  const bool largest = exponent == exponents - 1;
  if (largest && format.specials == Specials::ieee) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (largest && format.specials == Specials::all_ones && mantissa == mantissas - 1) return std::nan("");
  const bool shifted = format.specials == Specials::minus_zero;
  if (shifted && exponent == 0 && mantissa == 0 && sign < 0) return std::nan("");
  const int bias = static_cast<int>(exponents / 2) - (shifted ? 0 : 1);
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

/// A power of 2, or NaN.
double power_at(const std::byte* place) {
  const auto bits = std::to_integer<int>(*place);
  return bits == 0xFF ? std::nan("") : std::ldexp(1, bits - 127);
}

using Read = double (*)(const std::byte*);

/// What reads one element; null for types of which elements are no numbers in bytes of their own.
Read reader(std::string_view dtype) {
  struct Type {
    std::string_view name;
    Read read;
  };
  constexpr auto e4m3 = [](const std::byte* place) {
    return float_at<std::uint8_t>(place, {4, 3, Specials::all_ones});
  };
  constexpr auto e5m2 = [](const std::byte* place) { return float_at<std::uint8_t>(place, {5, 2}); };
  constexpr auto e4m3fnuz = [](const std::byte* place) {
    return float_at<std::uint8_t>(place, {4, 3, Specials::minus_zero});
  };
  constexpr auto e5m2fnuz = [](const std::byte* place) {
    return float_at<std::uint8_t>(place, {5, 2, Specials::minus_zero});
  };
  constexpr auto f16 = [](const std::byte* place) { return float_at<std::uint16_t>(place, {5, 10}); };
  constexpr auto bf16 = [](const std::byte* place) { return float_at<std::uint16_t>(place, {8, 7}); };
  static const Type types[] = {{"BOOL", number_at<std::uint8_t>},
                               {"U8", number_at<std::uint8_t>},
                               {"I8", number_at<std::int8_t>},
                               {"F8_E4M3", e4m3},
                               {"F8_E5M2", e5m2},
                               {"F8_E8M0", power_at},
                               {"F8_E4M3FNUZ", e4m3fnuz},
                               {"F8_E5M2FNUZ", e5m2fnuz},
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
  const auto* type = std::ranges::find(types, dtype, &Type::name);
  return type == std::end(types) ? nullptr : type->read;
}

TensorSummary summarize(const io::StoredTensor& tensor) {
  TensorSummary summary;
  summary.name = tensor.name;
  summary.dtype = tensor.dtype;
  summary.shape = tensor.shape;
  const Read read = reader(tensor.dtype);
  if (read == nullptr) return summary;
  const std::size_t element = io::stored_bits(tensor.dtype) / 8;
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
