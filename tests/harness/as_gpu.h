#pragma once

namespace halfstep::testing {

/// While it lives, devices that are opened or adopted say that they are discrete GPUs. One at a time.
class AsGpu {
 public:
  AsGpu();
  ~AsGpu();
  AsGpu(const AsGpu&) = delete;
  AsGpu& operator=(const AsGpu&) = delete;
};

}  // namespace halfstep::testing
