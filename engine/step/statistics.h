#pragma once

#include <halfstep/precision.h>
#include <halfstep/recorder.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "plan/program.h"

namespace halfstep::step {

/// Words of a tensor's row of statistics; shaders/step/statistics.glsl has the same.
inline constexpr std::size_t statistics_words = 12 + TensorStatistics::bins;
/// And of the row as it is reported, which ends with the scale that the tensor is stored times.
inline constexpr std::size_t reported_words = statistics_words + 1;

/// Appends the dispatches that look at a floating tensor's numbers and write its row; with `stop`, they also set
/// stopped_flag in `state` for what it names.
void look_at(plan::ProgramBuilder& builder, plan::TensorId tensor, plan::TensorId row, plan::TensorId state,
             const StopOn& stop);

/// A row as the device wrote it, of a tensor of `elements`; names and step are the caller's.
TensorStatistics read_statistics(std::span<const std::byte> row, std::uint64_t elements);

/// Whether a row is of a tensor that `stop` names an infinity or NaN of.
bool is_bad(std::span<const std::byte> row, const StopOn& stop);

}  // namespace halfstep::step
