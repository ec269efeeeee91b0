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
  std::uint32_t runs;  ///< of the slot, this one included, of which 2^32 - 1 are counted before it is 0 again
};
static_assert(sizeof(ReportHeader) == 44);

/// A step that an application may record keeps copies of as many reports, which its runs write in turns.
inline constexpr std::uint32_t kept_reports = 16;

/// Places of a report or a slot start at multiples of this. No device asks for more as the alignment of a binding.
inline constexpr std::uint64_t report_place_bytes = 256;

/// The first place at or after `bytes`.
constexpr std::uint64_t next_place(std::uint64_t bytes) {
  return (bytes + report_place_bytes - 1) / report_place_bytes * report_place_bytes;
}

}  // namespace halfstep::step
