#include <cmath>

#include "optim/rule.h"

namespace halfstep {
namespace {

class RmsPropRule final : public optim::RuleOf<RmsProp> {
 public:
  using RuleOf::RuleOf;

  std::string name() const override { return "rmsprop"; }

  void check() const override {
    const RmsProp& rmsprop = numbers();
    optim::require(rmsprop.alpha >= 0 && rmsprop.alpha < 1, "alpha", "in [0, 1)", rmsprop.alpha);
    optim::require(optim::is_divisor(rmsprop.epsilon), "epsilon", "2^-125 or more", rmsprop.epsilon);
    optim::require(rmsprop.momentum >= 0 && rmsprop.momentum < 1, "momentum", "in [0, 1)", rmsprop.momentum);
  }

  /// In the order of shaders/optim/rmsprop.comp.
  std::vector<std::string> states() const override {
    std::vector<std::string> names{numbers().centered ? "gradient_variance" : "square_average"};
    if (numbers().centered) names.emplace_back("gradient_average");
    if (numbers().momentum != 0) names.emplace_back("momentum");
    return names;
  }

  UpdateKernel kernel(const UpdateCall& call) const override {
    const RmsProp& rmsprop = numbers();
    return {.shader = "rmsprop",
            .constants = {rmsprop.momentum != 0, rmsprop.centered},
            .numbers = {call.rate, rmsprop.alpha, rmsprop.epsilon, rmsprop.momentum, call.weight_decay}};
  }

  std::vector<NamedNumber> small_numbers() const override {
    return {{"epsilon", static_cast<double>(numbers().epsilon)},
            {"1 - alpha", 1 - static_cast<double>(numbers().alpha)}};
  }
};

}  // namespace

RmsProp::operator Optimizer() const {
  return optim::make<RmsPropRule>(*this);
}

}  // namespace halfstep
