#pragma once

#include <halfstep/guest.h>

#include <map>
#include <string>
#include <string_view>

#include "step/step_program.h"

namespace halfstep::train {

/// Takes inputs of the graph from an application's memory in the place of values. Each memory has room for
/// `micro_batches` of them. Throws Error, which begins with `who`, for a name that is no input which is given values, and
/// for memory that does not fit.
void share_inputs(std::string_view who, step::StepGraph& graph, const std::map<std::string, DeviceBuffer>& memory,
                  std::int64_t micro_batches);

/// Puts the only output of the graph into an application's memory. Throws Error likewise.
void share_output(std::string_view who, step::StepGraph& graph, const DeviceBuffer& memory);

}  // namespace halfstep::train
