#pragma once

#include <cstddef>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// Appends the dispatches that sum `source` over the axes marked in `summed`, in f32, into `result` (the axes that
/// remain, in order), times `factor`. A long sum of few results is made in several passes, so that every core has work.
/// The order of the additions is fixed for a device.
void lower_sum(plan::Lowering& out, plan::TensorId source, const std::vector<bool>& summed, plan::TensorId result,
               float factor);

/// The same over all axes but the last.
void lower_column_sums(plan::Lowering& out, plan::TensorId source, plan::TensorId result);
/// How many dispatches that takes.
std::ptrdiff_t column_sum_dispatches(const plan::Lowering& out, plan::TensorId source);

}  // namespace halfstep::ops
