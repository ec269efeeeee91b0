#pragma once

#include <halfstep/update_rule.h>

namespace halfstep::optim {

/// Throws Error if a hyperparameter is out of range, or the names of states are not unique.
void check(const UpdateRule& rule);

}  // namespace halfstep::optim
