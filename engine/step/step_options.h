#pragma once

#include <halfstep/precision.h>

#include <cstdint>

namespace halfstep::step {

/// What a training step is beside its graph.
struct StepOptions {
  Precision precision{};
  float clip_norm = 0;           ///< 0: gradients are not clipped
  std::uint32_t accumulate = 1;  ///< micro-batches in a step, each as large as the graph's batch
  float ema_decay = 0;           ///< 0: no averages of weights are kept
};

}  // namespace halfstep::step
