#pragma once

#include <halfstep/tensor.h>

#include "bench/measure.h"

namespace bench {

/// A copy of a tensor's bytes, as fast as the device allows.
halfstep::Tensor copy(halfstep::Tensor x);

/// Measures the device's peak rates: multiply-adds in registers, and a copy larger than most caches.
Peaks measure_peaks(const Bench& bench);

}  // namespace bench
