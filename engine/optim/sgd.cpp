#include "optim/rule.h"

namespace halfstep {
namespace {

class SgdRule final : public optim::RuleOf<Sgd> {
 public:
  using RuleOf::RuleOf;

  std::string name() const override { return "sgd"; }

  void check() const override {
    const Sgd& sgd = numbers();
    optim::require(sgd.momentum >= 0 && sgd.momentum < 1, "momentum", "in [0, 1)", sgd.momentum);
    optim::require(!sgd.nesterov || sgd.momentum > 0, "momentum", "positive with nesterov", sgd.momentum);
  }

  std::vector<std::string> states() const override {
    if (numbers().momentum == 0) return {};
    return {"momentum"};
  }

  UpdateKernel kernel(const UpdateCall& call) const override {
    const Sgd& sgd = numbers();
    return {.shader = "sgd",
            .constants = {sgd.momentum != 0, sgd.nesterov, call.scale_in_rate},
            .numbers = {call.rate, sgd.momentum, call.weight_decay}};
  }

  bool takes_scale_in_rate() const override { return true; }
};

}  // namespace

Sgd::operator Optimizer() const {
  return optim::make<SgdRule>(*this);
}

}  // namespace halfstep
