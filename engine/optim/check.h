#pragma once

#include <halfstep/update_rule.h>

namespace halfstep::optim {

/// Throws Error where a hyperparameter is out of range, or states have no names of their own.
void check(const UpdateRule& rule);

}  // namespace halfstep::optim
