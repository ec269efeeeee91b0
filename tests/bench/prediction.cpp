#include "bench/prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace bench {
namespace {

/// Clocks for which subgroups occupy each part of a compute unit, as if one SIMD had its part of what they share.
struct Clocks {
  double arithmetic = 0;
  double local = 0;
  double loads = 0;

  Clocks operator*(double times) const { return {arithmetic * times, local * times, loads * times}; }
  Clocks operator+(const Clocks& other) const {
    return {arithmetic + other.arithmetic, local + other.local, loads + other.loads};
  }
};

Clocks clocks_of(const Gpu& gpu, const Mix& mix, std::uint32_t lanes) {
  constexpr double slow = 4;
  const double passes = static_cast<double>(lanes) / gpu.unit.lanes;
  const bool issues_pairs = gpu.unit.float32_flops > 2.0 * gpu.unit.simds * gpu.unit.lanes;
  // Both halves of 64 invocations are issued together, or two instructions of 32.
  const double pairs = passes > 1 ? mix.float32 : mix.paired32;
  const double float32 = mix.float32 - (issues_pairs ? pairs / 2 : 0);
  Clocks clocks;
  clocks.arithmetic = passes * (mix.packed16 + mix.mixed16 + float32 + mix.vector_other + (slow - 1) * mix.slow);
  if (mix.matrix > 0 && gpu.unit.matrix_flops > 0) {
    clocks.arithmetic += mix.matrix * (2.0 * 16 * 16 * 16) / (gpu.unit.matrix_flops / gpu.unit.simds);
  }
  // However few bytes each invocation accesses, a bank serves one at a time.
  const double banks = gpu.unit.local_bytes / 4;
  clocks.local = lanes * std::max(mix.local_bytes / gpu.unit.local_bytes, mix.local / banks) * gpu.unit.simds;
  clocks.loads = mix.load_bytes * lanes / gpu.unit.cached_bytes * gpu.unit.simds;
  return clocks;
}

/// Operations a second of the arithmetic that computes most of a kernel's.
double peak_of(const Gpu& gpu, const MachineCode& code) {
  const Mix& mix = code.inner_loop.flops(1) > 0 ? code.inner_loop : code.whole;
  const bool pairs = mix.packed16 > mix.float32 + mix.mixed16;
  const double of_unit = mix.matrix > 0 ? gpu.unit.matrix_flops
                         : pairs        ? gpu.unit.float16_flops
                                        : gpu.unit.float32_flops;
  return of_unit * gpu.compute_units * gpu.clock();
}

/// The mean part of all SIMDs that work: workgroups go to compute units in turns.
double busy_simds(const Gpu& gpu, const Work& work) {
  const double units = gpu.compute_units;
  const double rounds = std::ceil(work.groups / units);
  const double subgroups = std::ceil(static_cast<double>(work.invocations) / work.lanes);
  const double of_unit = std::min(1.0, subgroups * rounds / gpu.unit.simds);
  return work.groups / (rounds * units) * of_unit;
}

}  // namespace

Prediction predict(const Gpu& gpu, const Work& work) {
  const double subgroups = work.groups * std::ceil(static_cast<double>(work.invocations) / work.lanes);
  Clocks clocks = clocks_of(gpu, work.code.whole, work.lanes) * subgroups;
  if (work.flops > 0 && work.code.inner_loop.flops(work.lanes) > 0) {
    clocks = clocks_of(gpu, work.code.outside, work.lanes) * subgroups +
             clocks_of(gpu, work.code.inner_loop, work.lanes) * (work.flops / work.code.inner_loop.flops(work.lanes));
  }
  const double simds = static_cast<double>(gpu.compute_units) * gpu.unit.simds;
  const double available = std::max(1.0, subgroups / simds);
  const double waiting = std::max(1.0, work.parallelism / available);
  const double scale = 1000 * waiting / (simds * busy_simds(gpu, work) * gpu.clock());
  const double memory = 1000 * work.bytes / (gpu.gigabytes_per_second * 1e9);
  const std::array<std::pair<double, std::string_view>, 4> parts{{{scale * clocks.arithmetic, "arithmetic"},
                                                                  {scale * clocks.local, "shared memory"},
                                                                  {scale * clocks.loads, "loads"},
                                                                  {memory, "memory"}}};
  const auto longest = std::ranges::max_element(parts, {}, &std::pair<double, std::string_view>::first);
  return {longest->first, longest->second, std::max(memory, 1000 * work.flops / peak_of(gpu, work.code))};
}

}  // namespace bench
