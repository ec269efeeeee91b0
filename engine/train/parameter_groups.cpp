#include "train/parameter_groups.h"

#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "passes/backward.h"

namespace halfstep::train {
namespace {

const ParameterGroup* group_of(std::string_view name, const TrainerOptions& options) {
  const auto found =
      std::ranges::find_if(options.groups, [&](const ParameterGroup& group) { return matches(group.pattern, name); });
  return found == options.groups.end() ? nullptr : &*found;
}

state::Training training_of(const graph::Value& value, const TrainerOptions& options) {
  state::Training training;
  const bool decayed = options.decay_vectors || value.type.shape.size() > 1;
  if (decayed) training.weight_decay = options.optimizer->weight_decay();
  const ParameterGroup* group = group_of(value.name, options);
  if (group == nullptr) return training;
  if (group->frozen) return {.frozen = true};
  training.rate = group->rate;
  training.weight_decay = group->weight_decay.value_or(training.weight_decay);
  return training;
}

/// The parameters of a graph that `value` depends on, by name.
std::set<std::string_view> reaching(const graph::Ir& written, graph::ValueId value) {
  const graph::ValueId wanted[] = {value};
  std::set<graph::ValueId> read{value};
  for (const graph::NodeId node : passes::needed_nodes(written, wanted)) {
    read.insert(written.nodes[node].inputs.begin(), written.nodes[node].inputs.end());
  }
  std::set<std::string_view> names;
  for (const graph::ValueId id : read) {
    if (written.values[id].origin == graph::Origin::parameter) names.insert(written.values[id].name);
  }
  return names;
}

/// In the order of stores: trained, frozen because the loss does not depend on them, frozen by a group.
int place_of(const state::Training& training) {
  return !training.frozen ? 0 : training.unreached ? 1 : 2;
}

/// Throws Error unless the first kind, of all in the order of stores, is trained.
void expect_trained(const state::Training& first) {
  if (first.unreached) fail("trainer", "expected a loss that depends on a parameter to train, got one on none");
  if (first.frozen) fail("trainer", "expected a parameter to train, got frozen ones only");
}

}  // namespace

void group_parameters(step::StepGraph& graph, const graph::Ir& written, const TrainerOptions& options) {
  for (const ParameterGroup& group : options.groups) {
    const auto in_group = [&](graph::ValueId id) { return group_of(graph.ir.values[id].name, options) == &group; };
    if (std::ranges::none_of(graph.parameters, in_group)) {
      fail("trainer", fmt::format("expected a parameter for the group '{}', got none", group.pattern),
           fmt::format("the first parameter is '{}'", graph.ir.values[graph.parameters.front()].name));
    }
  }
  const std::set<std::string_view> reached = reaching(written, options.loss.id());
  const auto training = [&](graph::ValueId id) {
    const graph::Value& value = graph.ir.values[id];
    const state::Training asked = training_of(value, options);
    return asked.frozen || reached.contains(value.name) ? asked : state::Training{.frozen = true, .unreached = true};
  };
  // In the order in which each kind of training first appears.
  std::vector<state::Training> kinds;
  for (const graph::ValueId id : graph.parameters) {
    if (std::ranges::find(kinds, training(id)) == kinds.end()) kinds.push_back(training(id));
  }
  std::ranges::stable_sort(kinds, {}, place_of);
  expect_trained(kinds.front());
  std::vector<graph::ValueId> ordered;
  for (const state::Training& kind : kinds) {
    for (const graph::ValueId id : graph.parameters) {
      if (training(id) != kind) continue;
      ordered.push_back(id);
      graph.training.push_back(kind);
    }
  }
  // Of those that groups freeze the ones read in f32 come first, so that masters can end where the others begin.
  const auto frozen = std::ranges::find(graph.training, 2, place_of) - graph.training.begin();
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
