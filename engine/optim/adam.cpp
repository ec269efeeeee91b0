#include <algorithm>
#include <cmath>
#include <type_traits>

#include "optim/rule.h"

namespace halfstep {
namespace {

/// Adam, or AdamW with decoupled weight decay.
template <typename Numbers>
class AdamRule final : public optim::RuleOf<Numbers> {
 public:
  using optim::RuleOf<Numbers>::RuleOf;

  std::string name() const override { return decoupled ? "adamw" : "adam"; }

  void check() const override {
    const Numbers& adam = this->numbers();
    optim::require(adam.beta1 >= 0 && adam.beta1 < 1, "beta1", "in [0, 1)", adam.beta1);
    optim::require(adam.beta2 >= 0 && adam.beta2 < 1, "beta2", "in [0, 1)", adam.beta2);
    optim::require(optim::is_divisor(adam.epsilon), "epsilon", "2^-125 or more", adam.epsilon);
  }

  std::vector<std::string> states() const override { return {"first_moment", "second_moment"}; }

  UpdateKernel kernel(const UpdateCall& call) const override {
    const Numbers& adam = this->numbers();
    return {.shader = "adam",
            .constants = {decoupled},
            .numbers = {call.rate, adam.beta1, adam.beta2, adam.epsilon, call.weight_decay, log(adam.beta1),
                        log(adam.beta2)}};
  }

  std::vector<NamedNumber> small_numbers() const override {
    const Numbers& adam = this->numbers();
    return {{"epsilon", static_cast<double>(adam.epsilon)}, {"1 - beta2", 1 - static_cast<double>(adam.beta2)}};
  }

 private:
  /// Finite also for 0, whose powers it gives as 0.
  static float log(float beta) { return static_cast<float>(std::max(std::log(static_cast<double>(beta)), -1000.0)); }

  static constexpr bool decoupled = std::is_same_v<Numbers, AdamW>;
};

}  // namespace

Adam::operator Optimizer() const {
  return optim::make<AdamRule<Adam>>(*this);
}

AdamW::operator Optimizer() const {
  return optim::make<AdamRule<AdamW>>(*this);
}

}  // namespace halfstep
