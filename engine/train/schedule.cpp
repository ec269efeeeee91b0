#include <halfstep/error.h>
#include <halfstep/schedule.h>

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace halfstep {
namespace {

/// A table of `steps` rates, rate(i) for step i.
template <typename Rate>
Schedule table(std::int64_t steps, const Rate& rate) {
  constexpr std::int64_t most = 10'000'000;
  if (steps < 1 || steps > most) fail("schedule", fmt::format("expected 1 to {} steps, got {}", most, steps));
  std::vector<float> rates(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i)
    rates[static_cast<std::size_t>(i)] = static_cast<float>(rate(static_cast<double>(i)));
  return Schedule(std::move(rates));
}

}  // namespace

Schedule Schedule::step(float rate, std::int64_t every, float factor, std::int64_t steps) {
  if (every < 1) fail("schedule", fmt::format("expected a positive number of steps between drops, got {}", every));
  return table(steps, [=](double i) { return rate * std::pow(factor, std::floor(i / static_cast<double>(every))); });
}

Schedule Schedule::linear(float from, float to, std::int64_t steps) {
  const double last = std::max(1.0, static_cast<double>(steps - 1));
  return table(steps, [=](double i) { return from + (to - from) * (i / last); });
}

Schedule Schedule::cosine(float peak, std::int64_t warmup, std::int64_t steps, float floor) {
  if (warmup < 0 || warmup > steps)
    fail("schedule", fmt::format("expected a warmup of 0 to {} steps, got {}", steps, warmup));
  const auto rise = static_cast<double>(warmup);
  const double fall = std::max(1.0, static_cast<double>(steps - warmup));
  return table(steps, [=](double i) {
    if (i < rise) return static_cast<double>(peak) * (i + 1) / rise;
    return floor + 0.5 * (peak - floor) * (1 + std::cos(std::numbers::pi * (i - rise) / fall));
  });
}

}  // namespace halfstep
