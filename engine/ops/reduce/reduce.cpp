#include "ops/reduce/reduce.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/columns.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

struct Axis {
  std::int64_t extent;
  std::int64_t stride;
};

/// The axes of a sum, outermost first, in quads.
struct Geometry {
  std::vector<Axis> kept;
  std::vector<Axis> summed;
  bool last_summed = false;
};

/// Appends an axis inside `axes`, merged with the previous one if the two are contiguous.
void append(std::vector<Axis>& axes, Axis axis) {
  if (axis.extent == 1) return;
  if (!axes.empty() && axes.back().stride == axis.extent * axis.stride) {
    axes.back() = {axes.back().extent * axis.extent, axis.stride};
  } else {
    axes.push_back(axis);
  }
}

Geometry geometry(const Shape& shape, const std::vector<bool>& summed) {
  Geometry result;
  std::int64_t stride = plan::layout(shape).quads();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool last = i + 1 == shape.size();
    const std::int64_t extent = last ? plan::layout(shape).quads_per_row() : shape[i];
    stride /= extent;
    append(summed[i] ? result.summed : result.kept, {extent, stride});
    if (last) result.last_summed = summed[i];
  }
  if (result.kept.empty()) result.kept.push_back({1, 0});
  if (result.summed.empty()) result.summed.push_back({1, 0});
  return result;
}

std::int64_t positions(const std::vector<Axis>& axes) {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

struct Push {
  std::uint32_t quads;
  std::uint32_t parts;
  std::uint32_t summed;
  std::uint32_t quads_per_row;
  std::uint32_t columns;
  float factor;
  std::array<std::uint32_t, 4> kept_extents;
  std::array<std::uint32_t, 4> kept_strides;
  std::array<std::uint32_t, 4> summed_extents;
  std::array<std::uint32_t, 4> summed_strides;
};

void put(const plan::Lowering& out, const std::vector<Axis>& axes, std::array<std::uint32_t, 4>& extents,
         std::array<std::uint32_t, 4>& strides) {
  if (axes.size() > extents.size()) {
    fail(out.label(), "expected at most 4 groups of axes to sum and 4 to keep in turn, got more",
         "sum over some of the axes first");
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    extents[i] = index32(out, axes[i].extent);
    strides[i] = index32(out, axes[i].stride);
  }
}

/// Loop rounds of an invocation of sum.comp that adds `terms`; if the last axis is summed, it does so for four rows.
std::int64_t rounds_of(std::int64_t terms, bool last_summed) {
  return last_summed ? 4 * (terms + 2) + 1 : terms + 1;
}

/// The number of slices of a sum on a software driver: one if it is short or there are enough results to keep the
/// device busy, but as many as the driver's limit of loop rounds requires.
std::int64_t slices_of(const plan::Target& target, std::int64_t quads, std::int64_t summed, bool last_summed) {
  constexpr std::int64_t short_sum = 256;
  constexpr std::int64_t shortest_slice = 64;
  const std::int64_t most_rounds = target.max_rounds;
  const std::int64_t most_terms = last_summed ? (most_rounds - 1) / 4 - 2 : most_rounds - 1;
  const std::int64_t least = plan::divided_up(summed, most_terms);
  if (summed <= short_sum) return least;
  const std::int64_t wanted = std::int64_t{target.wanted_groups} * flat_local_size(target);
  return std::max(least, std::clamp<std::int64_t>(wanted / quads, 1, summed / shortest_slice));
}

/// How a sum of `summed` terms is spread. On a GPU each round of a loop over memory takes 0.2 us (on an H200), and a
/// dispatch no more than a few of them.
ColumnSpread spread_of(const plan::Target& target, std::int64_t quads, std::int64_t summed, bool last_summed) {
  if (!plan::waits_for_memory(target)) {
    return {.local_size = flat_local_size(target), .parts = slices_of(target, quads, summed, last_summed)};
  }
  // Rows that are summed are read along, and four by each lane.
  return last_summed ? spread_columns(target, quads, summed, 4, 1) : spread_columns(target, quads, summed, 16, 4);
}

/// What is summed: the source as it is.
plan::Expression summand(const plan::Lowering& out, plan::TensorId source, DType storage) {
  plan::Expression expression;
  expression.kernel = plan::Expression::Kernel::after;
  expression.layout = plan::layout(out.type(source).shape);
  expression.storage = storage;
  expression.reads = {plan::Reading{}};
  expression.value = 0;
  return expression;
}

/// The partial results of a sum of several dispatches.
plan::TensorId partial_sums(plan::Lowering& out, const ColumnSpread& spread, std::int64_t quads) {
  return out.workspace("partial", {DType::f32, {spread.parts, quads * 4}});
}

/// One dispatch of a sum into `to`, the whole of it laid out as `lay` or the parts of that.
void dispatch_sum(plan::Lowering& out, plan::TensorId source, const Geometry& axes, const ColumnSpread& spread,
                  const plan::Layout& lay, plan::TensorId to, float factor, DType fused) {
  const std::int64_t terms = positions(axes.summed);
  Push push{};
  push.quads = index32(out, lay.quads());
  push.parts = index32(out, spread.parts);
  push.summed = index32(out, terms);
  push.quads_per_row = index32(out, lay.quads_per_row());
  push.columns = index32(out, lay.columns);
  push.factor = factor;
  put(out, axes.kept, push.kept_extents, push.kept_strides);
  put(out, axes.summed, push.summed_extents, push.summed_strides);
  DType storage = fused;
  for (const plan::TensorId tensor : {to, source}) {
    if (is_narrow(out.type(tensor).dtype)) storage = out.type(tensor).dtype;
  }
  const std::int64_t of_lane = plan::divided_up(terms, spread.parts * spread.lanes);
  out.dispatch(
      {.label = {},
       .shader = variant(out, "sum", storage),
       .constants = {spread.local_size, axes.last_summed, static_cast<std::uint32_t>(axes.kept.size()),
                     static_cast<std::uint32_t>(axes.summed.size()), spread.lanes, spread.together, spread.terms},
       .push = plan::push_bytes(push),
       .operands = {{to, plan::Access::write}, {source, plan::Access::read}},
       .groups = spread.groups(out.target(), spread.parts, lay.quads()),
       .rounds = rounds_of(of_lane, axes.last_summed) + spread.rounds(),
       .expression = summand(out, source, storage)});
}

}  // namespace

void lower_sum(plan::Lowering& out, plan::TensorId source, const std::vector<bool>& summed, plan::TensorId result,
               float factor, DType fused) {
  const Geometry axes = geometry(out.type(source).shape, summed);
  const plan::Layout lay = plan::layout(out.type(result).shape);
  const ColumnSpread spread = spread_of(out.target(), lay.quads(), positions(axes.summed), axes.last_summed);
  if (spread.parts == 1) return dispatch_sum(out, source, axes, spread, lay, result, factor, fused);
  const plan::TensorId parts = partial_sums(out, spread, lay.quads());
  dispatch_sum(out, source, axes, spread, lay, parts, 1, fused);
  lower_sum(out, parts, {true, false}, result, factor);
}

LastSum lower_sums_before_last(plan::Lowering& out, plan::TensorId source, std::int64_t quads) {
  const std::int64_t rows = plan::layout(out.type(source).shape).quads() / quads;
  const ColumnSpread spread = spread_of(out.target(), quads, rows, false);
  if (spread.parts == 1) return {source, rows, spread};
  const plan::TensorId parts = partial_sums(out, spread, quads);
  dispatch_sum(out, source, {.kept = {{quads, 1}}, .summed = {{rows, quads}}}, spread, plan::layout({4 * quads}), parts,
               1, DType::f32);
  return lower_sums_before_last(out, parts, quads);
}

std::int64_t LastSum::loop_rounds() const {
  return rounds_of(plan::divided_up(rows, spread.lanes), false) + spread.rounds();
}

void lower_column_sums(plan::Lowering& out, plan::TensorId source, plan::TensorId result, DType fused) {
  std::vector<bool> summed(out.type(source).shape.size(), true);
  summed.back() = false;
  lower_sum(out, source, summed, result, 1, fused);
}

std::ptrdiff_t column_sum_dispatches(const plan::Lowering& out, plan::TensorId source) {
  const plan::Layout lay = plan::layout(out.type(source).shape);
  std::ptrdiff_t dispatches = 1;
  for (std::int64_t terms = lay.rows; (terms = spread_of(out.target(), lay.quads_per_row(), terms, false).parts) > 1;)
    ++dispatches;
  return dispatches;
}

}  // namespace halfstep::ops
