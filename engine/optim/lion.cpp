#include "optim/rule.h"

namespace halfstep {
namespace {

class LionRule final : public optim::RuleOf<Lion> {
 public:
  using RuleOf::RuleOf;

  std::string name() const override { return "lion"; }

  void check() const override {
    const Lion& lion = numbers();
    optim::require(lion.beta1 >= 0 && lion.beta1 < 1, "beta1", "in [0, 1)", lion.beta1);
    optim::require(lion.beta2 >= 0 && lion.beta2 < 1, "beta2", "in [0, 1)", lion.beta2);
  }

  std::vector<std::string> states() const override { return {"momentum"}; }

  UpdateKernel kernel(const UpdateCall& call) const override {
    const Lion& lion = numbers();
    return {.shader = "lion", .constants = {}, .numbers = {call.rate, lion.beta1, lion.beta2, call.weight_decay}};
  }

  std::vector<NamedNumber> small_numbers() const override {
    return {{"1 - beta2", 1 - static_cast<double>(numbers().beta2)}};
  }
};

}  // namespace

Lion::operator Optimizer() const {
  return optim::make<LionRule>(*this);
}

}  // namespace halfstep
