#pragma once

#include <halfstep/language.h>

#include <cstdint>
#include <vector>

namespace halfstep {

/// A learning rate for every applied step: a table on the device, indexed by the number of updates made so far. A
/// skipped step does not advance it. After the end of the table the last rate is used. All functions throw Error unless
/// `steps` is from 1 to 10,000,000 (of a warmup, from 0) and the other arguments are in the ranges given. A table
/// that is empty, or has a rate that is negative or not finite, is an Error of Trainer::compile.
struct HALFSTEP_API Schedule {
  std::vector<float> rates;

  /// A constant rate. A number converts to this implicitly.
  Schedule(float rate) : rates{rate} {}  // NOLINT(google-explicit-constructor): `.rate = 0.01F` is how it is used
  explicit Schedule(std::vector<float> table) : rates(std::move(table)) {}

  /// `rate`, multiplied by `factor` after every `every` steps, at least 1; the table has `steps` entries.
  static Schedule step(float rate, std::int64_t every, float factor, std::int64_t steps);
  /// `rate`, multiplied by `factor` at each step in `milestones`, which rise from 0 or more; the table has `steps`
  /// entries.
  static Schedule multi_step(float rate, const std::vector<std::int64_t>& milestones, float factor, std::int64_t steps);
  /// Linear from `from` to `to` over `steps` steps.
  static Schedule linear(float from, float to, std::int64_t steps);
  /// Linear warmup: peak / warmup in the first step, `peak` in step `warmup` (from 0 to `steps`; 0: none). Then half a
  /// cosine down to `floor` at step `steps`, and `floor` after it: Loshchilov and Hutter 2017.
  static Schedule cosine(float peak, std::int64_t warmup, std::int64_t steps, float floor = 0);
  /// `rate` times (1 - i / steps)^power at step i, but not below `floor`, and so at step `steps` and after it; `power`
  /// is positive.
  static Schedule polynomial(float rate, std::int64_t steps, float power = 1, float floor = 0);
  /// Rises from peak / 25 to `peak` over the fraction `rise` (between 0 and 1) of `steps` steps, then falls to
  /// peak / 250000, each along half a cosine: Smith and Topin 2018, with fast.ai's constants. Where that fraction ends
  /// between two steps, so does the rise, as PyTorch's does; where it ends before the first, the rate only falls.
  static Schedule one_cycle(float peak, std::int64_t steps, float rise = 0.3F);

  /// This schedule, with its first `steps` rates multiplied by 1 / steps, 2 / steps, ..., 1.
  Schedule with_warmup(std::int64_t steps) const;
  /// Before this schedule, `steps` rates more: its first, multiplied by 1 / steps, 2 / steps, ..., 1.
  Schedule after_warmup(std::int64_t steps) const;
};

}  // namespace halfstep
