#include "ops/norm/channel_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
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

/// The longest slice for that many passes within the driver's limit of loop rounds, and within `longest_sum`.
std::int64_t longest_slice(const plan::Target& target, std::int64_t passes) {
  return std::min(std::int64_t{target.max_rounds} / passes - 1, longest_sum);
}

constexpr std::int64_t moment_passes = 2;  ///< of channel_moments.comp and channel_moments_merge.comp

/// Enough slices to keep the device busy, each long enough to be worth the values that an invocation loads once. More
/// if the driver limits loop rounds. Each quad of a slice's channels is shared by `lanes`.
Slices busy_slices(const plan::Lowering& out, const ChannelSets& sets, std::uint32_t lanes = 1) {
  const std::int64_t shortest = std::int64_t{lanes} * (plan::waits_for_memory(out.target()) ? 4 : 16);
  const std::int64_t columns = sets.sets * quads_of(sets) * lanes;
  const std::int64_t busy = 2 * std::int64_t{out.target().wanted_groups} * flat_local_size(out.target());
  const std::int64_t wanted =
      std::clamp<std::int64_t>(busy / columns, 1, std::max<std::int64_t>(sets.rows / shortest, 1));
  return slices_of(out, sets,
                   std::min(plan::divided_up(sets.rows, wanted), lanes * longest_slice(out.target(), moment_passes)));
}

/// The form of f32 of a dispatch over slices by a kernel that includes norm/channel_lanes.glsl, where the device's
/// loads from one address by all invocations are one load; its last constants are `constants`.
std::optional<plan::FormOfF32> lanes_form(const plan::Lowering& out, const std::string& shader, const ChannelSets& sets,
                                          const Slices& slices, const std::vector<std::uint32_t>& constants) {
  const plan::Target& target = out.target();
  const std::uint32_t lanes = target.subgroups.size;
  if (!target.uniform_loads || !target.subgroups.hand_over() || quads_of(sets) * 4 % lanes != 0) return std::nullopt;
  const std::int64_t subgroups = std::int64_t{slices.invocations} * 4 / lanes;
  if (subgroups > std::int64_t{target.max_groups[0]} * target.max_groups[1]) return std::nullopt;
  plan::FormOfF32 form{.shader = shader,
                       .constants = {lanes, index32(out, quads_of(sets))},
                       .groups = plan::groups_for(target, subgroups * lanes, lanes),
                       .addressed = 0b11};
  form.constants.insert(form.constants.end(), constants.begin(), constants.end());
  return form;
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

/// The number of dispatches that merge `parts` before the one that merges all that are left.
std::ptrdiff_t merges_before_last(const plan::Target& target, std::int64_t quads, std::uint32_t parts) {
  const std::uint32_t once = merge_of(target, quads, parts).once;
  return once >= parts ? 0 : 1 + merges_before_last(target, quads, (parts + once - 1) / once);
}

/// How the moments of slices are merged into those of longer ones, all of them where they are few.
struct Merging {
  plan::ChannelMoments from;
  std::uint32_t parts;
  Merge how;

  std::int64_t rows() const { return from.rows * how.once; }
  bool is_last() const { return how.once >= parts; }
};

Merging merging_of(const plan::Lowering& out, const ChannelSets& sets, const plan::ChannelMoments& from) {
  const std::uint32_t parts = slices_of(out, sets, from.rows).slices;
  return {from, parts, merge_of(out.target(), quads_of(sets), parts)};
}

/// By a kernel that includes norm/moments_merge.glsl, whose own push constants and operands come after those of that.
void dispatch_merge(plan::Lowering& out, const std::string& shader, const ChannelSets& sets, const Merging& merging,
                    std::span<const std::byte> own_push, std::vector<plan::Operand> operands) {
  const std::int64_t quads = quads_of(sets);
  const ColumnSpread& spread = merging.how.spread;
  const Slices to = slices_of(out, sets, merging.rows());
  std::vector<std::byte> push = plan::push_bytes(to);
  push.insert(push.end(), own_push.begin(), own_push.end());
  operands.insert(operands.begin(), {merging.from.parts, Access::read});
  out.dispatch({.label = {},
                .shader = shader,
                .constants = {spread.local_size, index32(out, quads), index32(out, merging.from.rows), merging.parts,
                              spread.lanes, spread.together, spread.terms},
                .push = std::move(push),
                .operands = std::move(operands),
                .groups = spread.groups(out.target(), sets.sets * to.slices, quads),
                .rounds = rounds_of(merging.how.once / spread.lanes, moment_passes) + spread.rounds()});
}

plan::ChannelMoments merged(plan::Lowering& out, const ChannelSets& sets, const Merging& merging) {
  const Shape shape = partial_shape(sets, slices_of(out, sets, merging.rows()));
  const plan::TensorId moments = out.workspace("moments", {DType::f32, shape});
  dispatch_merge(out, "channel_moments_merge", sets, merging, {}, {{moments, Access::write}});
  return {moments, merging.rows()};
}

/// The moments of every set, in so few parts that one dispatch merges them: that one.
Merging lower_moments_before_last(plan::Lowering& out, plan::TensorId x, const ChannelSets& sets) {
  const std::int64_t quads = quads_of(sets);
  const Slices alone = busy_slices(out, sets);
  std::optional<plan::ChannelMoments> found;
  if (sets.sets == 1) found = out.moments_of(x);
  if (found) {
    out.count_unfused(1 + merges_before_last(out.target(), quads, alone.slices) -
                      merges_before_last(out.target(), quads, slices_of(out, sets, found->rows).slices));
  } else {
    found = {out.workspace("moments", {DType::f32, partial_shape(sets, alone)}), alone.length};
    dispatch_slices(out, variant(out, "channel_moments", out.type(x).dtype), sets, alone,
                    {{x, Access::read}, {found->parts, Access::write}}, rounds_of(alone.length, moment_passes));
  }
  Merging merging = merging_of(out, sets, *found);
  while (!merging.is_last()) merging = merging_of(out, sets, merged(out, sets, merging));
  return merging;
}

}  // namespace

plan::TensorId lower_moments(plan::Lowering& out, plan::TensorId x, const ChannelSets& sets) {
  const Merging last = lower_moments_before_last(out, x, sets);
  return last.parts == 1 ? last.from.parts : merged(out, sets, last).parts;
}

void lower_batch_statistics(plan::Lowering& out, plan::TensorId x, const BatchStatistics& statistics,
                            const ChannelSets& sets) {
  struct Push {
    std::uint32_t channels;
    float epsilon;
    float momentum;
  };
  ChannelSets all = sets;
  Merging last;
  if (out.ranks() > 1) {
    all.rows *= out.ranks();
    const plan::TensorId moments = lower_moments(out, x, sets);
    last = merging_of(out, all, {out.over_ranks(moments, plan::OverRanks::moments, sets.rows), all.rows});
  } else {
    last = lower_moments_before_last(out, x, sets);
  }
  const std::vector<std::byte> push =
      plan::push_bytes(Push{index32(out, sets.channels), statistics.epsilon, statistics.momentum});
  dispatch_merge(out, "batch_norm_statistics", all, last, push,
                 {{statistics.running_mean, Access::read},
                  {statistics.running_variance, Access::read},
                  {statistics.used, Access::write},
                  {statistics.next_mean, Access::write},
                  {statistics.next_variance, Access::write}});
}

void lower_channel_norm(plan::Lowering& out, plan::TensorId x, plan::TensorId statistics, plan::TensorId weight,
                        plan::TensorId bias, plan::TensorId y, const ChannelSets& sets) {
  const Slices slices = busy_slices(out, sets);
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
  // On a GPU lanes share a slice, so that there are so few that one dispatch adds them up.
  const std::int64_t quads = quads_of(sets);
  ColumnSpread spread{.local_size = flat_local_size(out.target())};
  if (plan::waits_for_memory(out.target())) spread = spread_columns(out.target(), quads, sets.rows, 4, 8);
  const Slices slices = busy_slices(out, sets, spread.lanes);
  const plan::TensorId sums = out.workspace("partial_sums", {DType::f32, partial_shape(sets, slices)});
  out.dispatch({.label = {},
                .shader = variant(out, "channel_norm_sums", out.type(x).dtype),
                .constants = {spread.local_size, index32(out, quads), 0, 0, spread.lanes, spread.together},
                .push = plan::push_bytes(slices),
                .operands = {{x, Access::read}, {dy, Access::read}, {statistics, Access::read}, {sums, Access::write}},
                .groups = spread.groups(out.target(), sets.sets * slices.slices, quads),
                .rounds = rounds_of(plan::divided_up(slices.length, spread.lanes), 1) + 2 * spread.rounds(),
                .mixes = true,
                .of_f32 = lanes_form(out, "channel_norm_sums_lanes", sets, slices, {})});
  return sums;
}

plan::TensorId lower_set_sums(plan::Lowering& out, plan::TensorId sums, const ChannelSets& sets) {
  if (out.type(sums).shape[1] == 1) return sums;
  const plan::TensorId of_sets = out.workspace("sums", {DType::f32, sets.shape(2)});
  lower_sum(out, sums, {false, true, false, false}, of_sets, 1);
  return of_sets;
}

plan::TensorId lower_parameter_gradients(plan::Lowering& out, plan::TensorId sums, plan::TensorId weight_gradient,
                                         plan::TensorId bias_gradient) {
  const std::int64_t channels = out.type(sums).shape.back();
  const std::uint32_t quads = index32(out, quads_of({.channels = channels}));
  const LastSum last = lower_sums_before_last(out, sums, 2 * quads);
  const ColumnSpread& spread = last.spread;
  const plan::TensorId all = out.workspace("sums", {DType::f32, {1, 2, channels}});
  out.dispatch({.label = {},
                .shader = variant(out, "channel_norm_parameters", out.type(weight_gradient).dtype),
                .constants = {spread.local_size, quads, 0, 0, spread.lanes, spread.together, spread.terms},
                .push = plan::push_bytes(index32(out, last.rows)),
                .operands = {{last.source, Access::read},
                             {all, Access::write},
                             {weight_gradient, Access::write},
                             {bias_gradient, Access::write}},
                .groups = spread.groups(out.target(), 1, 2 * quads),
                .rounds = last.loop_rounds(),
                .mixes = true});
  return all;
}

void lower_norm_gradient(plan::Lowering& out, plan::TensorId x, plan::TensorId dy, plan::TensorId statistics,
                         plan::TensorId weight, plan::TensorId means, GradientMeans kind, plan::TensorId dx,
                         const ChannelSets& sets) {
  const Slices slices = busy_slices(out, sets);
  const std::uint32_t local_size = flat_local_size(out.target());
  const std::uint32_t of_sums = kind == GradientMeans::sums ? 1 : 0;
  out.dispatch({.label = {},
                .shader = variant(out, "channel_norm_gradient", out.type(x).dtype),
                .constants = {local_size, index32(out, quads_of(sets)), of_sums},
                .push = plan::push_bytes(slices),
                .operands = {{x, Access::read},
                             {dy, Access::read},
                             {statistics, Access::read},
                             {weight, Access::read},
                             {means, Access::read},
                             {dx, Access::write}},
                .groups = plan::groups_for(out.target(), slices.invocations, local_size),
                .rounds = rounds_of(slices.length, 1),
                .mixes = true,
                .of_f32 = lanes_form(out, "channel_norm_gradient_lanes", sets, slices, {of_sums})});
}

}  // namespace halfstep::ops
