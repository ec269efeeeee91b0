#pragma once

#include <halfstep/language.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace halfstep {

/// Statistics of a tensor's values in one step, as computed by the flight recorder (Inspector::watch).
struct TensorStatistics {
  /// Bin i counts numbers of exponent first_exponent + i. The first and last bin also count all numbers beyond them.
  static constexpr int first_exponent = -40;
  static constexpr std::size_t bins = 64;

  std::string name;               ///< of the tensor: "conv1/weight.gradient", "conv1/conv2d:3"
  std::string op;                 ///< the operator that produced it
  std::uint64_t step = 0;         ///< number of this step, from 1: steps attempted so far, this one included
  std::uint32_t micro_batch = 0;  ///< index in the step, from 0 (TrainerOptions::accumulate)
  float loss_scale = 1;           ///< in the step: gradients are stored multiplied by this
  float gradient_scale = 1;       ///< and parameters' gradients by this: their own scale (Precision::gradient_scales)
  std::uint64_t elements = 0;     ///< of the tensor, without the padding of its rows
  float min = 0;                  ///< min to rms: of the finite values only
  float max = 0;
  double mean_magnitude = 0;
  double rms = 0;
  std::uint64_t zeros = 0;
  std::uint64_t subnormals = 0;  ///< too small for a normal number of the tensor's type (of f32 tensors: of f16), not 0
  std::uint64_t large = 0;       ///< at the largest number of that type (f16: 65504) or above, and finite
  std::uint64_t infinities = 0;
  std::uint64_t nans = 0;
  std::array<std::uint64_t, bins> exponents{};
};

/// Flags named as in a floating-point status register.
struct NumericsFlags {
  bool overflow = false;        ///< OFLO: an infinity produced from finite inputs
  bool divide_by_zero = false;  ///< DIV0: an infinity from a division by 0
  bool invalid = false;         ///< INV: a NaN
};

}  // namespace halfstep
