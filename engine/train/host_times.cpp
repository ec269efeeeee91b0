#include "train/host_times.h"

#include <algorithm>

namespace halfstep::train {
namespace {

/// How many steps' times are kept for the median.
constexpr std::size_t most_steps = 8192;

}  // namespace

void HostTimes::add(std::chrono::nanoseconds time) {
  const double microseconds = std::chrono::duration<double, std::micro>(time).count();
  if (microseconds_.size() < most_steps) {
    microseconds_.push_back(microseconds);
    return;
  }
  microseconds_[next_] = microseconds;
  next_ = (next_ + 1) % most_steps;
}

double HostTimes::median() const {
  if (microseconds_.empty()) return 0;
  std::vector<double> times = microseconds_;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace halfstep::train
