#pragma once

#include <string_view>
#include <vector>

#include "plan/choice.h"
#include "plan/target.h"

/// The operators that leave a plan::Choice, by its kind.
namespace halfstep::ops {

/// What a candidate for choices of this kind must compute rightly. Throws Error if there is no such kind.
std::vector<plan::Trial> checks(std::string_view kind);

/// A target on which choices of this kind are all made for the candidate called `name`.
plan::Target with_candidate(plan::Target target, std::string_view kind, std::string_view name);

}  // namespace halfstep::ops
