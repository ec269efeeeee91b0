#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace halfstep::train {

/// How long the host worked on the latest steps.
class HostTimes {
 public:
  void add(std::chrono::nanoseconds time);
  /// In microseconds; 0 where there was no step.
  double median() const;

 private:
  std::vector<double> microseconds_;
  std::size_t next_ = 0;  ///< the oldest, once there are as many as are kept
};

}  // namespace halfstep::train
