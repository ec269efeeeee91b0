#pragma once

#include <halfstep/language.h>

#include <cstdint>
#include <vector>

namespace halfstep {

/// A learning rate for every applied step: a table on the device, indexed by the number of updates made so far, so that
/// a skipped step does not use one up. Past its end the last rate holds.
struct HALFSTEP_API Schedule {
  std::vector<float> rates;

  /// The same rate always. A number converts to this.
  Schedule(float rate) : rates{rate} {}  // NOLINT(google-explicit-constructor): `.rate = 0.01F` is how it is used
  explicit Schedule(std::vector<float> table) : rates(std::move(table)) {}

  /// `rate`, multiplied by `factor` after every `every` steps, for `steps` steps.
  static Schedule step(float rate, std::int64_t every, float factor, std::int64_t steps);
  /// `rate`, multiplied by `factor` at each of the steps `milestones`, which rise, for `steps` steps.
  static Schedule multi_step(float rate, const std::vector<std::int64_t>& milestones, float factor, std::int64_t steps);
  /// From `from` to `to` in a straight line over `steps` steps.
  static Schedule linear(float from, float to, std::int64_t steps);
  /// Up from 0 to `peak` in `warmup` steps, then down along half a cosine to `floor` at step `steps`: Loshchilov and
  /// Hutter 2017.
  static Schedule cosine(float peak, std::int64_t warmup, std::int64_t steps, float floor = 0);
  /// `rate` times (1 - i / steps)^power at step i, but not below `floor`.
  static Schedule polynomial(float rate, std::int64_t steps, float power = 1, float floor = 0);
  /// Up from peak / 25 to `peak` over the first `rise` of `steps` steps, then down to peak / 250000, each
  /// along half a cosine: Smith and Topin 2018, with fast.ai's numbers.
  static Schedule one_cycle(float peak, std::int64_t steps, float rise = 0.3F);

  /// This schedule, its first `steps` rates multiplied by 1 / steps, 2 / steps, ..., 1.
  Schedule with_warmup(std::int64_t steps) const;
};

}  // namespace halfstep
