#include "train/parameter_groups.h"

#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace halfstep::train {
namespace {

const ParameterGroup* group_of(std::string_view name, const TrainerOptions& options) {
  const auto found =
      std::ranges::find_if(options.groups, [&](const ParameterGroup& group) { return matches(group.pattern, name); });
  return found == options.groups.end() ? nullptr : &*found;
}

step::Training training_of(const graph::Value& value, const TrainerOptions& options) {
  step::Training training;
  const bool decayed = options.decay_vectors || value.type.shape.size() > 1;
  if (decayed) std::visit([&](const auto& kind) { training.weight_decay = kind.weight_decay; }, options.optimizer);
  const ParameterGroup* group = group_of(value.name, options);
  if (group == nullptr) return training;
  if (group->frozen) return {.frozen = true};
  training.rate = group->rate;
  training.weight_decay = group->weight_decay.value_or(training.weight_decay);
  return training;
}

}  // namespace

void group_parameters(step::StepGraph& graph, const TrainerOptions& options) {
  for (const ParameterGroup& group : options.groups) {
    const auto in_group = [&](graph::ValueId id) { return group_of(graph.ir.values[id].name, options) == &group; };
    if (std::ranges::none_of(graph.parameters, in_group)) {
      fail("trainer", fmt::format("expected a parameter for the group '{}', got none", group.pattern),
           fmt::format("the first parameter is '{}'", graph.ir.values[graph.parameters.front()].name));
    }
  }
  // In the order in which each kind of training first appears.
  std::vector<step::Training> kinds;
  for (const graph::ValueId id : graph.parameters) {
    const step::Training training = training_of(graph.ir.values[id], options);
    if (std::ranges::find(kinds, training) == kinds.end()) kinds.push_back(training);
  }
  std::stable_partition(kinds.begin(), kinds.end(), [](const step::Training& training) { return !training.frozen; });
  if (!kinds.empty() && kinds.front().frozen) fail("trainer", "expected a parameter to train, got frozen ones only");
  std::vector<graph::ValueId> ordered;
  for (const step::Training& kind : kinds) {
    for (const graph::ValueId id : graph.parameters) {
      if (training_of(graph.ir.values[id], options) != kind) continue;
      ordered.push_back(id);
      graph.training.push_back(kind);
    }
  }
  // Of the frozen ones those read in f32 come first, so that masters can end where the others begin.
  const auto frozen = std::ranges::find(graph.training, true, &step::Training::frozen) - graph.training.begin();
  std::stable_partition(ordered.begin() + frozen, ordered.end(),
                        [&](graph::ValueId id) { return graph.ir.values[id].type.dtype == DType::f32; });
  graph.parameters = std::move(ordered);
}

bool is_frozen(const graph::Ir& ir, const graph::Node& node, const TrainerOptions& options) {
  bool any = false;
  for (const graph::ValueId input : node.inputs) {
    const graph::Value& value = ir.values[input];
    if (value.origin != graph::Origin::parameter) continue;
    if (!training_of(value, options).frozen) return false;
    any = true;
  }
  return any;
}

void check_groups(const TrainerOptions& options) {
  for (const ParameterGroup& group : options.groups) {
    const float decay = group.weight_decay.value_or(0);
    if (!(group.rate >= 0) || !std::isfinite(group.rate) || !(decay >= 0) || !std::isfinite(decay)) {
      fail("optimizer", fmt::format("expected a rate and weight_decay of 0 or more for the group '{}', got {} and {}",
                                    group.pattern, group.rate, decay));
    }
  }
}

}  // namespace halfstep::train
