#pragma once

#include <halfstep/error.h>
#include <halfstep/optimizer.h>

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

namespace halfstep::optim {

/// Throws Error "[optimizer] expected `name` to be `range`, got `value`" unless the condition holds.
inline void require(bool condition, std::string_view name, std::string_view range, double value) {
  if (!condition) fail("optimizer", fmt::format("expected {} to be {}, got {}", name, range, value));
}

/// Whether it is finite, and positive on every device: some take a subnormal number for 0, and reproducible programs
/// 2^-126 too.
inline bool is_divisor(float value) {
  return value >= 0x1p-125F && std::isfinite(value);
}

/// A rule whose hyperparameters are `rate`, `weight_decay` and others.
template <typename Numbers>
class RuleOf : public UpdateRule {
 public:
  explicit RuleOf(Numbers numbers) : numbers_(std::move(numbers)) {}

  const Schedule& rate() const final { return numbers_.rate; }
  float weight_decay() const final { return numbers_.weight_decay; }

 protected:
  const Numbers& numbers() const { return numbers_; }

 private:
  Numbers numbers_;
};

/// An Optimizer that holds a new Rule of these hyperparameters.
template <typename Rule, typename Numbers>
Optimizer make(const Numbers& numbers) {
  return Optimizer(std::make_shared<Rule>(numbers));
}

}  // namespace halfstep::optim
