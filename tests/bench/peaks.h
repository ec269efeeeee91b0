#pragma once

#include <halfstep/tensor.h>

#include "bench/measure.h"

namespace bench {

/// A tensor's bytes, moved as fast as the device can.
halfstep::Tensor copy(halfstep::Tensor x);

/// Measures the most that the device gives: multiply-adds in registers, and a copy larger than most caches.
Peaks measure_peaks(const Bench& bench);

}  // namespace bench
