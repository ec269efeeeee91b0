#pragma once

#include <cstdint>
#include <string_view>

#include "bench/gpus.h"
#include "bench/machine_code.h"

namespace bench {

/// What a prediction needs to know of a dispatch and of its compiled kernel.
struct Work {
  double flops = 0;               ///< a multiply-add counts as two; 0 if it only moves data
  double bytes = 0;               ///< of the tensors that it reads and writes
  double groups = 1;              ///< workgroups
  std::uint32_t invocations = 1;  ///< of a workgroup
  std::uint32_t lanes = 64;       ///< of a subgroup
  double parallelism = 1;         ///< subgroups that a SIMD needs to be busy all the time
  MachineCode code;
};

struct Prediction {
  double milliseconds = 0;
  std::string_view bound;  ///< what takes longest: "arithmetic", "shared memory", "loads" or "memory"
  /// Milliseconds at the GPU's peak: of its operations by the arithmetic that most of them take (matrix units, pairs of
  /// f16, or f32), or of its traffic to memory, whichever is longer.
  double at_peak = 0;
};

/// How long a GPU should take for a dispatch: the longest of its arithmetic, its traffic to shared memory and to the
/// cache, and its traffic to memory, with the SIMDs that have nothing to do while a dispatch ends or is too small. The
/// inner loop runs as often as its operations make up those of the dispatch; each subgroup runs all else once. Caches,
/// launches and the clock's changes are not modelled: it is a prediction, not a measurement.
Prediction predict(const Gpu& gpu, const Work& work);

}  // namespace bench
