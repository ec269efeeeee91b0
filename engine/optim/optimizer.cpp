#include <halfstep/error.h>
#include <halfstep/update_rule.h>

#include <utility>

namespace halfstep {

Optimizer::Optimizer(std::shared_ptr<const UpdateRule> rule) : rule_(std::move(rule)) {
  if (rule_ == nullptr) fail("optimizer", "expected an update rule, got none");
}

UpdateKernel UpdateRule::kernel(const UpdateCall& /*call*/) const {
  fail(name(), "expected a rule with a kernel, got none", "override kernel(), or in_operators() and update()");
}

UpdateResult UpdateRule::update(const UpdateTensors& /*now*/) const {
  fail(name(), "expected a rule in operators, got none", "override update()");
}

}  // namespace halfstep
