#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plan/layout.h"
#include "step/update.h"

namespace halfstep::step {
namespace {

/// Inputs of a rule, numbered as in shaders/optim/operator_input.comp; states follow.
enum Input : std::uint32_t { gradient_input = 0, weight_input = 1, first_state_input = 2 };

/// Bindings of shaders/optim/update.glsl. Whoever uses the masters uses the weights too.
enum Binding : std::size_t { gradients_binding = 1, masters_binding = 2, weights_binding = 3, moments_binding = 4 };

/// The id of a tensor that a rule has made, if it is one.
graph::ValueId result(const UpdateRule& rule, const graph::Ir& ir, std::string_view what, Tensor tensor,
                      const Shape& shape) {
  graph::expect_value(rule.name(), what, ir, tensor, "UpdateRule::update returns it");
  const TensorType wanted{DType::f32, shape};
  if (tensor.type() != wanted) {
    fail(rule.name(), fmt::format("expected {} as {}, got {}", what, to_string(wanted), to_string(tensor.type())),
         "cast and reshape convert it");
  }
  return tensor.id();
}

/// The update of one parameter.
class OperatorUpdate {
 public:
  OperatorUpdate(const StageContext& step, const state::ParameterRun& run, const UpdateRule& rule,
                 const state::ParameterEntry& entry)
      : step_(step),
        run_(run),
        graph_(update_graph(rule, entry.name, entry.type.shape)),
        part_{.quads = {entry.first_element / 4, static_cast<std::uint64_t>(plan::layout(entry.type.shape).quads())},
              .first_master = entry.first_element / 4,
              .first_moment = entry.first_moment / 4} {}

  void run() {
    plan::ProgramBuilder& builder = step_.builder;
    builder.values().begin_graph();
    builder.stores().set(Rounding::nearest, step_.options.precision.overflow);
    load(graph_.gradient, gradient_input, gradients_binding);
    load(graph_.weight, weight_input, masters_binding);
    for (std::uint32_t i = 0; i < graph_.states.size(); ++i) {
      load(graph_.states[i], first_state_input + i, moments_binding);
    }
    const Partials of_model = builder.set_partials({});
    std::vector<bool> lowered;
    run_graph(*graph_.ir, graph_.results, lowered, [&](const graph::Node& node) { builder.lower(*graph_.ir, node); });
    builder.set_partials(of_model);
    // The graph has read what these dispatches change.
    append(
        {.shader = "operator_direction", .constants = {}, .numbers = {run_.training.rate, run_.training.weight_decay}},
        {masters_binding, plan::Access::read_write}, {tensor_of(graph_.results[0]), plan::Access::read});
    for (std::uint32_t i = 0; i < graph_.states.size(); ++i) {
      append({.shader = "operator_state", .constants = {i, states()}, .numbers = {}},
             {moments_binding, plan::Access::read_write}, {tensor_of(graph_.results[1 + i]), plan::Access::read});
    }
  }

 private:
  std::uint32_t states() const { return static_cast<std::uint32_t>(graph_.states.size()); }
  plan::TensorId tensor_of(graph::ValueId value) const { return step_.builder.values().tensor_of(*graph_.ir, value); }

  /// Has an input that anything reads stored as a tensor.
  void load(graph::ValueId value, std::uint32_t input, Binding from) {
    const auto reads = [&](const graph::Node& node) {
      return std::ranges::find(node.inputs, value) != node.inputs.end();
    };
    const bool returned = std::ranges::find(graph_.results, value) != graph_.results.end();
    if (!returned && std::ranges::none_of(graph_.ir->nodes, reads)) return;
    const graph::Value& info = graph_.ir->values[value];
    const plan::TensorId tensor = step_.builder.tensor(info.name, info.type);
    step_.builder.values().bind(value, tensor);
    append({.shader = "operator_input", .constants = {input, states()}, .numbers = {}}, {from, plan::Access::read},
           {tensor, plan::Access::write});
  }

  struct Bound {
    Binding binding;
    plan::Access access;
  };

  /// A kernel of the engine's, which uses one of the bindings that all kernels of updates have, and a tensor. The
  /// bindings that it does not use are given what that one is given.
  void append(const UpdateKernel& kernel, Bound used, plan::Operand tensor) {
    plan::Dispatch dispatch = update_dispatch(step_, run_, part_, kernel);
    const plan::Operand gradients = dispatch.operands[gradients_binding];
    plan::Operand given = gradients;
    std::vector<Binding> others;
    for (const Binding binding : {masters_binding, weights_binding, moments_binding}) {
      plan::Operand& operand = dispatch.operands[binding];
      const bool weight = used.binding == masters_binding && binding == weights_binding;
      if ((binding == used.binding || weight) && operand.tensor != gradients.tensor) {
        operand.access = used.access;
        given = operand;
      } else {
        others.push_back(binding);
      }
    }
    for (const Binding binding : others) dispatch.operands[binding] = given;
    dispatch.operands.push_back(tensor);
    step_.builder.dispatch(std::move(dispatch));
  }

  const StageContext& step_;
  const state::ParameterRun& run_;
  UpdateGraph graph_;
  Update part_;
};

}  // namespace

UpdateGraph update_graph(const UpdateRule& rule, const std::string& parameter, const Shape& shape) {
  UpdateGraph graph;
  graph.ir = std::make_shared<graph::Ir>(graph::Types::settled);
  graph::Ir& ir = *graph.ir;
  const auto input = [&](std::string_view what) {
    graph::Value value;
    value.type = {DType::f32, shape};
    value.name = fmt::format("update/{}.{}", parameter, what);
    value.origin = graph::Origin::input;
    return ir.add_value(std::move(value));
  };
  graph.gradient = input("gradient");
  graph.weight = input("weight");
  UpdateTensors now{.gradient = ir.tensor(graph.gradient), .weight = ir.tensor(graph.weight), .states = {}};
  const std::vector<std::string> names = rule.states();
  for (const std::string& name : names) {
    graph.states.push_back(input(name));
    now.states.push_back(ir.tensor(graph.states.back()));
  }
  const UpdateResult made = rule.update(now);
  ir.attribute(0, "update/" + parameter, rule.name());
  graph.results.push_back(result(rule, ir, "a direction", made.direction, shape));
  if (made.states.size() != names.size()) {
    fail(rule.name(), fmt::format("expected the next values of {} states, got {}", names.size(), made.states.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    graph.results.push_back(result(rule, ir, fmt::format("the next '{}'", names[i]), made.states[i], shape));
  }
  return graph;
}

void update_by_operators(const StageContext& step, const state::ParameterRun& run, const UpdateRule& rule) {
  const std::uint64_t end = run.first_element + run.padded_elements;
  for (const state::ParameterEntry& entry : step.layout.parameters.entries()) {
    if (entry.first_element < run.first_element || entry.first_element >= end) continue;
    OperatorUpdate(step, run, rule, entry).run();
  }
}

}  // namespace halfstep::step
