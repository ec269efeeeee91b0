#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

namespace halfstep::ops {

/// What random numbers are drawn for; equal keys draw equal numbers, on every device.
struct NoiseKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t stream = 0;
};

/// x in f16, each value rounded up or down at random so that its expectation is x.
Tensor stochastic_cast(Tensor x, NoiseKey key);

}  // namespace halfstep::ops
