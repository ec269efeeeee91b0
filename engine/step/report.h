#pragma once

#include <cstdint>

namespace halfstep::step {

/// What a step leaves for the host, in its slot's report buffer; what it reports of its graph follows, one a place.
struct ReportHeader {
  std::uint32_t attempted[2];
  std::uint32_t applied;
  std::uint32_t skipped;
  std::uint32_t overflow;  ///< as in StepState
  float loss_scale;
  float rate;
  float clip;
  std::uint32_t tensor_updates_skipped;
  float gradient_norm;
};
static_assert(sizeof(ReportHeader) == 40);

/// Places of a report or a slot start at multiples of this. No device asks for more as the alignment of a binding.
inline constexpr std::uint64_t report_place_bytes = 256;

/// The first place at or after `bytes`.
constexpr std::uint64_t next_place(std::uint64_t bytes) {
  return (bytes + report_place_bytes - 1) / report_place_bytes * report_place_bytes;
}

}  // namespace halfstep::step
