#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/columns.h"
#include "plan/lowering.h"

namespace halfstep::ops {

/// Appends the dispatches that sum `source` over the axes marked in `summed`, in f32, into `result` (the remaining
/// axes, in order), times `factor`. A long sum with few results takes several passes, to occupy every core. The order
/// of the additions is fixed for a device. Where `source` is f32, what computes it may be fused into the sum if it
/// reads tensors of f32 and `fused` only.
void lower_sum(plan::Lowering& out, plan::TensorId source, const std::vector<bool>& summed, plan::TensorId result,
               float factor, DType fused = DType::f32);

/// The last dispatch of a sum over rows: what it adds, and how it is spread.
struct LastSum {
  plan::TensorId source;
  std::int64_t rows;
  ColumnSpread spread;

  std::int64_t loop_rounds() const;
};

/// Appends all dispatches but the last one of a sum of f32 over rows of `quads` each.
LastSum lower_sums_before_last(plan::Lowering& out, plan::TensorId source, std::int64_t quads);

/// lower_sum() over all axes but the last.
void lower_column_sums(plan::Lowering& out, plan::TensorId source, plan::TensorId result, DType fused = DType::f32);
/// The number of dispatches of lower_column_sums().
std::ptrdiff_t column_sum_dispatches(const plan::Lowering& out, plan::TensorId source);

}  // namespace halfstep::ops
