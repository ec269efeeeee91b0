#include <halfstep/error.h>
#include <halfstep/update_rule.h>

#include <utility>

namespace halfstep {

Optimizer::Optimizer(std::shared_ptr<const UpdateRule> rule) : rule_(std::move(rule)) {
  if (rule_ == nullptr) fail("optimizer", "expected an update rule, got none");
}

}  // namespace halfstep
