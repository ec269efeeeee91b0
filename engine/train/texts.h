#pragma once

#include <halfstep/inspector.h>

#include <string>
#include <string_view>

#include "run/program.h"
#include "state/store_spec.h"

/// What a compiled trainer tells of itself, in numbers and for people.
namespace halfstep::train {

/// What a training program is made of, alone. Without PlanSummary::arena_bytes_kept and peak_bytes.
PlanSummary summarize(const plan::Plan& plan, const state::StoreSpec& spec);

/// What the step takes in memory, store by store, then its dispatches.
std::string plan_text(const PlanSummary& summary, const plan::Plan& plan, const state::StoreSpec& spec);

/// Operator by operator, what it stores, computes and accumulates in, and why.
std::string explain_text(const step::StepGraph& graph, const TrainerOptions& options, const state::StoreSpec& store);

/// "nearest" or "stochastic".
std::string_view rounding_name(Rounding rounding);

}  // namespace halfstep::train
