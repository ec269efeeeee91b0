#include "train/parameter_groups.h"

#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>

#include "optim/check.h"
#include "passes/backward.h"
#include "train/step_graph.h"

namespace halfstep::train {
namespace {

/// That one optimizer after the other may refer to.
constexpr int most_substitutes = 8;

const ParameterGroup* group_of(std::string_view name, const TrainerOptions& options) {
  const auto found =
      std::ranges::find_if(options.groups, [&](const ParameterGroup& group) { return matches(group.pattern, name); });
  return found == options.groups.end() ? nullptr : &*found;
}

/// The optimizer of a parameter: its group's or the trainer's, or what that has in its place.
const Optimizer& optimizer_of(const graph::Value& parameter, const TrainerOptions& options) {
  const ParameterGroup* group = group_of(parameter.name, options);
  const Optimizer* optimizer = group != nullptr && group->optimizer ? &*group->optimizer : &options.optimizer;
  for (int i = 0; i < most_substitutes; ++i) {
    const Optimizer* substitute = (*optimizer)->substitute(parameter.name, parameter.type.shape);
    if (substitute == nullptr) return *optimizer;
    optimizer = substitute;
  }
  fail((*optimizer)->name(), fmt::format("expected an optimizer for '{}', got substitutes only", parameter.name));
}

/// The place of an optimizer in a list that has it.
std::uint32_t index_of(std::span<const Optimizer> optimizers, const Optimizer& optimizer) {
  const auto is_it = [&](const Optimizer& other) { return &*other == &*optimizer; };
  return static_cast<std::uint32_t>(std::ranges::find_if(optimizers, is_it) - optimizers.begin());
}

/// The trainer's optimizer, then the others that parameters have.
std::vector<Optimizer> optimizers_of(const step::StepGraph& graph, const TrainerOptions& options) {
  std::vector<Optimizer> result{options.optimizer};
  for (const graph::ValueId id : graph.parameters) {
    const Optimizer& optimizer = optimizer_of(graph.ir.values[id], options);
    if (index_of(result, optimizer) < result.size()) continue;
    optim::check(*optimizer);
    check_scale(options.precision.loss_scale, optimizer);
    result.push_back(optimizer);
  }
  return result;
}

/// How a parameter is trained by one of `optimizers`, if the loss depends on it.
state::Training training_of(const graph::Value& value, std::span<const Optimizer> optimizers,
                            const TrainerOptions& options) {
  const ParameterGroup* group = group_of(value.name, options);
  if (group != nullptr && group->frozen) return {.frozen = true};
  const Optimizer& optimizer = optimizer_of(value, options);
  state::Training training;
  training.optimizer = index_of(optimizers, optimizer);
  training.states = static_cast<std::uint32_t>(optimizer->states().size());
  const bool decayed = options.decay_vectors || value.type.shape.size() > 1;
  if (decayed) training.weight_decay = optimizer->weight_decay();
  if (group == nullptr) return training;
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

/// What a value was before the precision's casts of it.
const graph::Value& before_casts(const graph::Ir& ir, graph::ValueId id) {
  const auto is_cast = [&](const graph::Value& value) {
    return value.origin == graph::Origin::node && ir.nodes[value.producer].op->name() == "cast";
  };
  while (is_cast(ir.values[id])) id = ir.nodes[ir.values[id].producer].inputs.front();
  return ir.values[id];
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
  graph.optimizers = optimizers_of(graph, options);
  const auto training = [&](graph::ValueId id) {
    const graph::Value& value = graph.ir.values[id];
    const state::Training asked = training_of(value, graph.optimizers, options);
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
  if (!node.op->keeps_states()) return false;
  bool any = false;
  for (const graph::ValueId input : std::span(node.inputs).subspan(1)) {
    const graph::Value& value = before_casts(ir, input);
    if (value.origin != graph::Origin::parameter) continue;
    const ParameterGroup* group = group_of(value.name, options);
    if (group == nullptr || !group->frozen) return false;
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
    if (group.frozen && group.optimizer) {
      fail("optimizer", fmt::format("expected no optimizer for the frozen group '{}', got {}", group.pattern,
                                    (*group.optimizer)->name()));
    }
  }
}

}  // namespace halfstep::train
