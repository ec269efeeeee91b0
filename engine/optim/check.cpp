#include "optim/check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "optim/rule.h"

namespace halfstep::optim {
namespace {

/// Checkpoints store states beside the weights and, under this name, the weight averages.
constexpr std::string_view averages = "average";

/// An upper limit; no known optimizer needs more states per weight.
constexpr std::size_t most_states = 16;

void check_names(const UpdateRule& rule) {
  if (rule.name().empty()) fail("optimizer", "expected a name, got none");
  const std::vector<std::string> states = rule.states();
  if (states.size() > most_states) {
    fail(rule.name(), fmt::format("expected at most {} states, got {}", most_states, states.size()));
  }
  std::set<std::string> names;
  for (const std::string& state : states) {
    if (!state.empty() && state != averages && names.insert(state).second) continue;
    fail(rule.name(), fmt::format("expected states of names of their own, other than '{}', got '{}'", averages, state));
  }
}

}  // namespace

void check(const UpdateRule& rule) {
  check_names(rule);
  rule.check();
  require(rule.weight_decay() >= 0 && std::isfinite(rule.weight_decay()), "weight_decay", "0 or more",
          rule.weight_decay());
  const std::vector<float>& rates = rule.rate().rates;
  require(!rates.empty(), "rate", "a schedule of at least one step", 0);
  for (const float rate : rates) require(rate >= 0 && std::isfinite(rate), "rate", "0 or more and finite", rate);
}

}  // namespace halfstep::optim
