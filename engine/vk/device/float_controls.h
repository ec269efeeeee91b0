#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vk/device/capabilities.h"

namespace halfstep::vk {

/// The shader with the execution modes of SPV_KHR_float_controls that the device supports, for the float widths that
/// the shader uses: preserve denormals, also where f16 is unpacked from words; round to nearest even; preserve signed
/// zeros, infinities and NaN. Unchanged if the device supports none, and if the shader asks for any of these modes or
/// their opposites itself.
std::vector<std::uint32_t> with_float_controls(std::span<const std::uint32_t> words, const Capabilities& capabilities);

/// Whether a shader asks for any of these modes or their opposites itself, as one of an application may.
bool has_float_controls(std::span<const std::uint32_t> words);

/// Whether the device promises that conversions from f16 and to it preserve denormals in every shader that has these
/// modes.
bool promises_subnormals(const Capabilities& capabilities);

/// Whether the device has f16 arithmetic, and promises that conversions to f16 round to nearest, ties to even, and
/// preserve denormals, in every shader that has these modes.
bool promises_rounding(const Capabilities& capabilities);

}  // namespace halfstep::vk
