#include "ops/loss/row_loss.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

/// How a kernel of loss/row_loss.glsl is distributed over the device.
struct Spread {
  std::uint32_t local_size = 1;
  std::uint32_t lanes = 1;  ///< invocations that share a row; a power of two
  std::uint32_t groups = 1;
};

/// Loop rounds of an invocation for each of its rows: two passes through its part of the row, each followed by a
/// reduction over the lanes.
std::int64_t row_rounds(std::int64_t quads_per_row, std::uint32_t lanes) {
  return 2 * (plan::divided_up(quads_per_row, lanes) + 1) + 2 * (std::bit_width(lanes) + 1) + 1;
}

/// Loop rounds of a reduction over `invocations` of a workgroup.
std::int64_t reduction_rounds(std::uint32_t invocations) {
  return std::bit_width(invocations) + 1;
}

/// One invocation per row on a software driver; elsewhere enough that each has four quads of a row. More if a row takes
/// more loop rounds than the driver allows.
std::uint32_t lanes_for(const plan::Target& target, std::int64_t quads_per_row, std::uint32_t local_size) {
  std::uint32_t lanes = 1;
  if (!target.cpu)
    lanes = std::bit_floor(static_cast<std::uint32_t>(std::clamp<std::int64_t>(quads_per_row / 4, 1, 64)));
  const std::int64_t most = std::int64_t{target.max_rounds} - reduction_rounds(local_size);
  while (lanes < local_size && row_rounds(quads_per_row, lanes) > most) lanes *= 2;
  return lanes;
}

/// One workgroup if there is little to do: it also computes the mean, which saves a dispatch. Otherwise enough to keep
/// the device busy, and so many that no invocation has more rows than the limit of loop rounds allows.
Spread spread(const plan::Target& target, const plan::Layout& lay) {
  constexpr std::int64_t little = 2048;
  Spread result;
  result.local_size = std::bit_floor(flat_local_size(target));
  result.lanes = lanes_for(target, lay.quads_per_row(), result.local_size);
  const std::int64_t rows_at_once = result.local_size / result.lanes;
  const std::int64_t needed = plan::divided_up(lay.rows, rows_at_once);
  const std::int64_t most_rounds = std::int64_t{target.max_rounds} - reduction_rounds(result.local_size);
  const std::int64_t most_rows = std::max<std::int64_t>(most_rounds / row_rounds(lay.quads_per_row(), result.lanes), 1);
  const std::int64_t busy = lay.quads() <= little ? 1 : 4 * std::int64_t{target.wanted_groups};
  // No more than rows, which 32 bits can count.
  result.groups = static_cast<std::uint32_t>(std::max(std::min(needed, busy), plan::divided_up(needed, most_rows)));
  return result;
}

/// One dispatch of row_mean.comp.
struct MeanStep {
  bool from_sums;
  bool to_sums;
  plan::TensorId from;
  plan::TensorId to;
  std::int64_t count;
  std::int64_t length;
};

void dispatch_mean(plan::Lowering& out, const MeanStep& step, plan::TensorId statistics, std::int64_t rows) {
  struct Push {
    std::uint32_t count, length, rows;
  };
  const std::uint32_t local_size = std::bit_floor(flat_local_size(out.target()));
  const std::int64_t groups = plan::divided_up(step.count, step.length);
  out.dispatch({.label = {},
                .shader = "row_mean",
                .constants = {local_size, step.from_sums, step.to_sums},
                .push = plan::push_bytes(Push{index32(out, step.count), index32(out, step.length), index32(out, rows)}),
                .operands = {{step.from, plan::Access::read},
                             {step.to, plan::Access::write},
                             // If sums are read, the weight is written to the statistics; otherwise the statistics are
                             // read.
                             {statistics, step.to_sums ? plan::Access::read : plan::Access::read_write}},
                .groups = plan::groups_for(out.target(), groups * local_size, local_size),
                .rounds = plan::divided_up(step.length, local_size) + 1 + reduction_rounds(local_size)});
}

/// The mean {} over the rows of `statistics` that count, and the weight of a row in it.
void lower_row_mean(plan::Lowering& out, plan::TensorId statistics, std::int64_t rows, plan::TensorId mean) {
  const std::uint32_t local_size = std::bit_floor(flat_local_size(out.target()));
  const std::int64_t most = (std::int64_t{out.target().max_rounds} - 1 - reduction_rounds(local_size)) * local_size;
  if (rows <= most) return dispatch_mean(out, {false, false, statistics, mean, rows, rows}, statistics, rows);
  const std::int64_t parts = plan::divided_up(rows, most);
  const plan::TensorId sums = out.workspace("sums", {DType::f32, {parts, 4}});
  dispatch_mean(out, {false, true, statistics, sums, rows, most}, statistics, rows);
  dispatch_mean(out, {true, false, sums, mean, parts, parts}, statistics, rows);
}

}  // namespace

Shape statistics_shape(std::int64_t rows) {
  return {rows + 1, 4};
}

Tensor rows_that_count(Tensor statistics) {
  const std::int64_t rows = statistics.shape().front() - 1;
  return slice(statistics, {rows, 1}, {rows + 1, 2});
}

void lower_rows(plan::Lowering& out, const std::string& shader, plan::TensorId statistics, std::uint32_t also_ignored,
                const std::vector<std::uint32_t>& constants) {
  struct Push {
    std::uint32_t rows;
    std::uint32_t classes;
    std::uint32_t quads_per_row;
    std::uint32_t groups;
  };
  const TensorType& logits = out.input_type(0);
  const plan::Layout lay = plan::layout(logits.shape);
  index32(out, lay.padded_elements());
  const Spread spread = ops::spread(out.target(), lay);
  const Push push{index32(out, lay.rows), index32(out, lay.columns), index32(out, lay.quads_per_row()), spread.groups};
  const std::int64_t rows_each = plan::divided_up(lay.rows, spread.groups * (spread.local_size / spread.lanes));
  std::vector<std::uint32_t> all{spread.local_size, spread.lanes, also_ignored};
  all.insert(all.end(), constants.begin(), constants.end());
  out.dispatch(
      {.label = {},
       .shader = variant(out, shader, logits.dtype),
       .constants = std::move(all),
       .push = plan::push_bytes(push),
       .operands = {{out.input(0), plan::Access::read},
                    {out.input(1), plan::Access::read},
                    {statistics, plan::Access::write},
                    {out.output(0), plan::Access::write}},
       .groups = plan::groups_for(out.target(), std::int64_t{spread.groups} * spread.local_size, spread.local_size),
       .rounds = rows_each * row_rounds(lay.quads_per_row(), spread.lanes) + reduction_rounds(spread.local_size)});
  if (spread.groups > 1) lower_row_mean(out, statistics, lay.rows, out.output(0));
}

}  // namespace halfstep::ops
