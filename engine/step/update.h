#pragma once

#include <halfstep/optimizer.h>

#include <memory>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "plan/dispatch.h"
#include "step/stages.h"

/// What both kinds of update rules share: those with a kernel of their own, and those written in operators.
namespace halfstep::step {

/// The dispatch of a kernel that includes shaders/optim/update.glsl, for a part of a run. Throws Error where an
/// application's kernel has no SPIR-V for the storage type.
plan::Dispatch update_dispatch(const StageContext& step, const state::ParameterRun& run, const Update& update,
                               const UpdateKernel& kernel);

/// Updates the parameters of a run by a rule that is written in operators, one after the other, so that they share
/// memory. Throws Error where the rule's result is not what UpdateResult says.
void update_by_operators(const StageContext& step, const state::ParameterRun& run, const UpdateRule& rule);

/// The operators of a rule for one parameter.
struct UpdateGraph {
  std::shared_ptr<graph::Ir> ir;
  graph::ValueId gradient = 0;
  graph::ValueId weight = 0;
  std::vector<graph::ValueId> states;
  /// What is computed: the direction, then the next values of the states.
  std::vector<graph::ValueId> results;
};

/// Throws Error where the rule's result is not what UpdateResult says.
UpdateGraph update_graph(const UpdateRule& rule, const std::string& parameter, const Shape& shape);

}  // namespace halfstep::step
