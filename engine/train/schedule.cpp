#include <halfstep/error.h>
#include <halfstep/schedule.h>
#include <halfstep/tensor.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/portable_math.h"

namespace halfstep {
namespace {

/// The rates rate(i) for steps 0 up to but not including `steps`, and for those of `beyond` more.
template <typename Rate>
Schedule table(std::int64_t steps, const Rate& rate, std::int64_t beyond = 0) {
  constexpr std::int64_t most = 10'000'000;
  if (steps < 1 || steps > most) fail("schedule", fmt::format("expected 1 to {} steps, got {}", most, steps));
  std::vector<float> rates(static_cast<std::size_t>(steps + beyond));
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = static_cast<float>(rate(static_cast<double>(i)));
  return Schedule(std::move(rates));
}

/// The same with rate(steps), which steps after the last one keep: where a schedule ends, no step before it does.
template <typename Rate>
Schedule table_to(std::int64_t steps, const Rate& rate) {
  return table(steps, rate, 1);
}

void check_warmup(std::int64_t steps) {
  constexpr std::int64_t most = 10'000'000;
  if (steps < 0 || steps > most)
    fail("schedule", fmt::format("expected a warmup of 0 to {} steps, got {}", most, steps));
}

}  // namespace

Schedule Schedule::step(float rate, std::int64_t every, float factor, std::int64_t steps) {
  if (every < 1) fail("schedule", fmt::format("expected a positive number of steps between drops, got {}", every));
  return table(steps,
               [=](double i) { return rate * portable::pow(factor, std::floor(i / static_cast<double>(every))); });
}

Schedule Schedule::multi_step(float rate, const std::vector<std::int64_t>& milestones, float factor,
                              std::int64_t steps) {
  const bool rising = std::ranges::adjacent_find(milestones, std::greater_equal<>()) == milestones.end();
  if (!rising || (!milestones.empty() && milestones.front() < 0)) {
    fail("schedule", fmt::format("expected milestones that rise from 0 on, got {}", to_string(milestones)));
  }
  return table(steps, [&](double i) {
    const auto passed = std::ranges::upper_bound(milestones, static_cast<std::int64_t>(i)) - milestones.begin();
    return rate * portable::pow(static_cast<double>(factor), static_cast<double>(passed));
  });
}

Schedule Schedule::linear(float from, float to, std::int64_t steps) {
  const double last = std::max(1.0, static_cast<double>(steps - 1));
  const double first = from;
  return table(steps, [=](double i) { return first + (to - first) * (i / last); });
}

Schedule Schedule::cosine(float peak, std::int64_t warmup, std::int64_t steps, float floor) {
  if (warmup < 0 || warmup > steps)
    fail("schedule", fmt::format("expected a warmup of 0 to {} steps, got {}", steps, warmup));
  const auto rise = static_cast<double>(warmup);
  const double fall = std::max(1.0, static_cast<double>(steps - warmup));
  return table_to(steps, [=](double i) {
    if (i < rise) return static_cast<double>(peak) * (i + 1) / rise;
    return floor + 0.5 * (peak - floor) * (1 + portable::cos_of_turns((i - rise) / fall / 2));
  });
}

Schedule Schedule::polynomial(float rate, std::int64_t steps, float power, float floor) {
  if (!(power > 0)) fail("schedule", fmt::format("expected a positive power, got {}", power));
  return table_to(steps, [=](double i) {
    const double left = 1 - i / static_cast<double>(steps);
    return std::max<double>(floor, rate * portable::pow(left, static_cast<double>(power)));
  });
}

Schedule Schedule::one_cycle(float peak, std::int64_t steps, float rise) {
  if (!(rise > 0 && rise < 1)) fail("schedule", fmt::format("expected a rise between 0 and 1, got {}", rise));
  const double first = static_cast<double>(peak) / 25;
  const double last = first * 1e-4;
  // Not rounded to a whole step: of 10 steps, an f32 fraction of 0.7 is a little less than 7.
  const double top = static_cast<double>(rise) * static_cast<double>(steps) - 1;
  const double fall = static_cast<double>(steps) - 1 - top;
  const auto between = [](double from, double to, double share) {
    return to + (from - to) * 0.5 * (1 + portable::cos_of_turns(share / 2));
  };
  return table(steps, [=](double i) {
    return i <= top && top > 0 ? between(first, static_cast<double>(peak), i / top)
                               : between(static_cast<double>(peak), last, (i - top) / fall);
  });
}

Schedule Schedule::with_warmup(std::int64_t steps) const {
  check_warmup(steps);
  Schedule result = *this;
  if (rates.empty()) return result;  // which Trainer::compile refuses
  result.rates.resize(std::max(rates.size(), static_cast<std::size_t>(steps) + 1), rates.back());
  for (std::int64_t i = 0; i < steps; ++i) {
    result.rates[static_cast<std::size_t>(i)] *= static_cast<float>(i + 1) / static_cast<float>(steps);
  }
  return result;
}

Schedule Schedule::after_warmup(std::int64_t steps) const {
  check_warmup(steps);
  if (rates.empty()) return *this;  // which Trainer::compile refuses
  Schedule result = Schedule(rates.front()).with_warmup(steps);
  result.rates.pop_back();
  result.rates.insert(result.rates.end(), rates.begin(), rates.end());
  return result;
}

}  // namespace halfstep
