#pragma once

#include <cstdint>
#include <vector>

namespace halfstep {

/// A learning rate for every applied step: a table on the device, indexed by the number of updates made so far, so that
/// a skipped step does not use one up. Past its end the last rate holds.
struct Schedule {
  std::vector<float> rates;

  /// The same rate always. A number converts to this.
  Schedule(float rate) : rates{rate} {}  // NOLINT(google-explicit-constructor): `.rate = 0.01F` is how it is used
  explicit Schedule(std::vector<float> table) : rates(std::move(table)) {}

  /// `rate`, multiplied by `factor` after every `every` steps, for `steps` steps.
  static Schedule step(float rate, std::int64_t every, float factor, std::int64_t steps);
  /// From `from` to `to` in a straight line over `steps` steps.
  static Schedule linear(float from, float to, std::int64_t steps);
  /// Up from 0 to `peak` in `warmup` steps, then down along half a cosine to `floor` at step `steps`: Loshchilov and
  /// Hutter 2017.
  static Schedule cosine(float peak, std::int64_t warmup, std::int64_t steps, float floor = 0);
};

}  // namespace halfstep
