#include "ops/norm/channel_norm.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ops/columns.h"
#include "ops/gemm/gemm.h"
#include "ops/kernel.h"
#include "ops/reduce/reduce.h"

namespace halfstep::ops {
namespace {

using plan::Access;

/// The rows of every set are split into slices of `length`, the last one may be shorter; an invocation processes one
/// quad of channels of a slice. The push constants of norm/channel_norm.glsl.
struct Slices {
  std::uint32_t rows;
  std::uint32_t length;
  std::uint32_t slices;  ///< per set
  std::uint32_t invocations;
};

std::int64_t quads_of(const ChannelSets& sets) {
  return plan::layout({sets.channels}).quads_per_row();
}

Slices slices_of(const plan::Lowering& out, const ChannelSets& sets, std::int64_t length) {
  const std::int64_t slices = plan::divided_up(sets.rows, length);
  return {index32(out, sets.rows), index32(out, length), index32(out, slices),
          index32(out, sets.sets * slices * quads_of(sets))};
}

/// Loop rounds of an invocation that reads a slice `passes` times.
std::int64_t rounds_of(std::int64_t length, std::int64_t passes) {
  return passes * (length + 1);
}

/// The longest slice for that many passes within the driver's limit of loop rounds.
std::int64_t longest_slice(const plan::Target& target, std::int64_t passes) {
  return std::int64_t{target.max_rounds} / passes - 1;
}

constexpr std::int64_t moment_passes = 2;  ///< of channel_moments.comp and channel_moments_merge.comp

/// Enough slices to keep the device busy, each long enough to be worth the values that an invocation loads once. More
/// if the driver limits loop rounds.
Slices slices_of(const plan::Lowering& out, const ChannelSets& sets) {
  const std::int64_t shortest = plan::waits_for_memory(out.target()) ? 4 : 16;
  const std::int64_t columns = sets.sets * quads_of(sets);
  const std::int64_t busy = 2 * std::int64_t{out.target().wanted_groups} * flat_local_size(out.target());
  const std::int64_t wanted =
      std::clamp<std::int64_t>(busy / columns, 1, std::max<std::int64_t>(sets.rows / shortest, 1));
  return slices_of(out, sets,
                   std::min(plan::divided_up(sets.rows, wanted), longest_slice(out.target(), moment_passes)));
}

/// A dispatch over slices; its constants are the quads of a row, then `constants`.
void dispatch_slices(plan::Lowering& out, const std::string& shader, const ChannelSets& sets, const Slices& slices,
                     const std::vector<plan::Operand>& operands, std::int64_t rounds,
                     std::vector<std::uint32_t> constants = {}) {
  constants.insert(constants.begin(), index32(out, quads_of(sets)));
  dispatch_flat(out, shader, slices.invocations, slices, operands, constants, {.rounds = rounds, .mixes = true});
}

Shape partial_shape(const ChannelSets& sets, const Slices& slices) {
  return {sets.sets, slices.slices, 2, sets.channels};
}

/// How `parts` parts are merged, and how many become one.
struct Merge {
  ColumnSpread spread;
  std::uint32_t once;
};

/// On a software driver an invocation merges all if they are few, else enough that few remain.
Merge merge_of(const plan::Target& target, std::int64_t quads, std::uint32_t parts) {
  constexpr std::uint32_t few = 128;
  if (plan::waits_for_memory(target)) {
    const ColumnSpread spread = spread_columns(target, quads, parts, 16, 4);
    return {spread, spread.lanes * spread.terms};
  }
  const std::uint32_t wanted =
      parts <= few ? parts : std::max(few / 2, static_cast<std::uint32_t>(std::ceil(std::sqrt(parts))));
  const std::int64_t once = std::min<std::int64_t>(wanted, longest_slice(target, moment_passes));
  return {{.local_size = flat_local_size(target)}, static_cast<std::uint32_t>(once)};
}

/// The number of dispatches that merge `parts`.
std::ptrdiff_t merge_count(const plan::Target& target, std::int64_t quads, std::uint32_t parts) {
  if (parts == 1) return 0;
  const std::uint32_t once = merge_of(target, quads, parts).once;
  return 1 + merge_count(target, quads, (parts + once - 1) / once);
}

/// Merges the moments of slices into the moments of whole sets.
plan::TensorId merge_moments(plan::Lowering& out, plan::TensorId moments, const ChannelSets& sets, Slices slices) {
  const std::int64_t quads = quads_of(sets);
  while (slices.slices > 1) {
    const plan::TensorId parts = moments;
    const Slices from = slices;
    const Merge merge = merge_of(out.target(), quads, from.slices);
    const ColumnSpread& spread = merge.spread;
    slices = slices_of(out, sets, std::int64_t{from.length} * merge.once);
    moments = out.workspace("moments", {DType::f32, partial_shape(sets, slices)});
    out.dispatch({.label = {},
                  .shader = "channel_moments_merge",
                  .constants = {spread.local_size, index32(out, quads), from.length, from.slices, spread.lanes,
                                spread.together, spread.terms},
                  .push = plan::push_bytes(slices),
                  .operands = {{parts, Access::read}, {moments, Access::write}},
                  .groups = spread.groups(out.target(), sets.sets * slices.slices, quads),
                  .rounds = rounds_of(merge.once / spread.lanes, moment_passes) + spread.rounds()});
  }
  return moments;
}

}  // namespace

plan::TensorId lower_moments(plan::Lowering& out, plan::TensorId x, const ChannelSets& sets) {
  const Slices alone = slices_of(out, sets);
  std::optional<plan::ChannelMoments> found;
  if (sets.sets == 1) found = out.moments_of(x);
  if (found) {
    const Slices slices = slices_of(out, sets, found->rows);
    out.count_unfused(1 + merge_count(out.target(), quads_of(sets), alone.slices) -
                      merge_count(out.target(), quads_of(sets), slices.slices));
    return merge_moments(out, found->parts, sets, slices);
  }
  const plan::TensorId moments = out.workspace("moments", {DType::f32, partial_shape(sets, alone)});
  dispatch_slices(out, variant(out, "channel_moments", out.type(x).dtype), sets, alone,
                  {{x, Access::read}, {moments, Access::write}}, rounds_of(alone.length, moment_passes));
  return merge_moments(out, moments, sets, alone);
}

void lower_channel_norm(plan::Lowering& out, plan::TensorId x, plan::TensorId statistics, plan::TensorId weight,
                        plan::TensorId bias, plan::TensorId y, const ChannelSets& sets) {
  const Slices slices = slices_of(out, sets);
  const std::uint32_t local_size = flat_local_size(out.target());
  out.dispatch({.label = {},
                .shader = variant(out, "channel_norm", out.type(x).dtype),
                .constants = {local_size, index32(out, quads_of(sets))},
                .push = plan::push_bytes(slices),
                .operands = {{x, Access::read},
                             {statistics, Access::read},
                             {weight, Access::read},
                             {bias, Access::read},
                             {y, Access::write}},
                .groups = plan::groups_for(out.target(), slices.invocations, local_size),
                .rounds = rounds_of(slices.length, 1),
                .expression = result_expression(out, y, 4, 5),
                .mixes = true});
}

plan::TensorId lower_gradient_sums(plan::Lowering& out, plan::TensorId x, plan::TensorId dy, plan::TensorId statistics,
                                   const ChannelSets& sets) {
  const Slices slices = slices_of(out, sets);
  const plan::TensorId parts = out.workspace("partial_sums", {DType::f32, partial_shape(sets, slices)});
  dispatch_slices(out, variant(out, "channel_norm_sums", out.type(x).dtype), sets, slices,
                  {{x, Access::read}, {dy, Access::read}, {statistics, Access::read}, {parts, Access::write}},
                  rounds_of(slices.length, 1));
  if (slices.slices == 1) return parts;
  const plan::TensorId sums = out.workspace("sums", {DType::f32, sets.shape(2)});
  lower_sum(out, parts, {false, true, false, false}, sums, 1);
  return sums;
}

void lower_parameter_gradients(plan::Lowering& out, plan::TensorId sums, plan::TensorId weight_gradient,
                               plan::TensorId bias_gradient, const ChannelSets& sets) {
  struct Push {
    std::uint32_t quads;
    std::uint32_t sets;
  };
  // If there are too many sets for one loop, they are partly summed first.
  std::int64_t count = sets.sets;
  if (count > longest_slice(out.target(), 1)) {
    const plan::TensorId every = std::exchange(sums, out.workspace("sums", {DType::f32, {1, 2, sets.channels}}));
    std::vector<bool> summed(out.type(every).shape.size(), false);
    summed.front() = true;
    lower_sum(out, every, summed, sums, 1);
    count = 1;
  }
  const Push push{index32(out, quads_of(sets)), index32(out, count)};
  dispatch_flat(out, variant(out, "channel_norm_parameters", out.type(weight_gradient).dtype), push.quads, push,
                {{sums, Access::read}, {weight_gradient, Access::write}, {bias_gradient, Access::write}}, {},
                {.rounds = rounds_of(count, 1), .mixes = true});
}

void lower_norm_gradient(plan::Lowering& out, plan::TensorId x, plan::TensorId dy, plan::TensorId statistics,
                         plan::TensorId weight, plan::TensorId means, GradientMeans kind, plan::TensorId dx,
                         const ChannelSets& sets) {
  const Slices slices = slices_of(out, sets);
  dispatch_slices(out, variant(out, "channel_norm_gradient", out.type(x).dtype), sets, slices,
                  {{x, Access::read},
                   {dy, Access::read},
                   {statistics, Access::read},
                   {weight, Access::read},
                   {means, Access::read},
                   {dx, Access::write}},
                  rounds_of(slices.length, 1), {kind == GradientMeans::sums});
}

}  // namespace halfstep::ops
