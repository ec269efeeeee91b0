#pragma once

#include <cstddef>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// Appends the dispatches that sum `source` over the axes marked in `summed`, in f32, into `result` (the remaining
/// axes, in order), times `factor`. A long sum with few results takes several passes, to occupy every core. The order
/// of the additions is fixed for a device. Where `source` is f32, what computes it may be fused into the sum if it
/// reads tensors of f32 and `fused` only.
void lower_sum(plan::Lowering& out, plan::TensorId source, const std::vector<bool>& summed, plan::TensorId result,
               float factor, DType fused = DType::f32);

/// The same over all axes but the last.
void lower_column_sums(plan::Lowering& out, plan::TensorId source, plan::TensorId result, DType fused = DType::f32);
/// The number of dispatches of lower_column_sums().
std::ptrdiff_t column_sum_dispatches(const plan::Lowering& out, plan::TensorId source);

}  // namespace halfstep::ops
