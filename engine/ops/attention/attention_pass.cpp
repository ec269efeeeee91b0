#include "ops/attention/attention_pass.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "ops/attention/attention_choice.h"
#include "ops/attention/attention_kernels.h"
#include "ops/elementwise/dropout.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

using plan::Access;

/// The push constants of attention.glsl.
struct Push {
  std::uint32_t queries, keys, heads, group, own_heads, own_tiles, window, first, end, first_head, end_head;
  std::uint32_t mask_batch, mask_head, mask_row;
  float scale;
  std::uint32_t stream, dropped;
  float factor;
};

AttentionExtents extents_of(const plan::Lowering& out, const AttentionTensors& tensors) {
  const Shape q = out.type(tensors.q).shape;
  const Shape k = out.type(tensors.k).shape;
  return {q[0],
          q[1],
          k[1],
          q[2],
          k[2],
          plan::layout(q).quads_per_row(),
          plan::layout(out.type(tensors.v).shape).quads_per_row()};
}

/// What one dispatch computes: the other rows from `first` to `end`, for these heads of each group.
struct Part {
  std::int64_t first, end, first_head, end_head, rounds;
};

/// As few parts as the limit of loop rounds allows. `segments`, of as many rows as there are others, take two binary
/// searches for each head.
std::vector<Part> parts_of(const plan::Lowering& out, const AttentionKernel& kernel, std::int64_t others,
                           std::int64_t group, bool segments) {
  const auto halvings = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(others)));
  const std::int64_t search = segments ? halvings + 1 : 0;
  const std::int64_t head_rounds = 2 + 2 * search;
  const auto limit = static_cast<std::int64_t>(out.target().max_rounds);
  const std::int64_t tiles = plan::divided_up(others, kernel.tile);
  const auto rounds = [&](std::int64_t part_tiles, std::int64_t heads) {
    return kernel.other_rounds + heads * (head_rounds + part_tiles * kernel.tile_rounds);
  };
  if (rounds(tiles, group) <= limit) return {{0, others, 0, group, rounds(tiles, group)}};
  const std::int64_t most = std::max<std::int64_t>(1, (limit - rounds(0, 1)) / kernel.tile_rounds);
  std::vector<Part> parts;
  for (std::int64_t head = 0; head < group; ++head) {
    for (std::int64_t tile = 0; tile < tiles; tile += most) {
      const std::int64_t count = std::min(most, tiles - tile);
      parts.push_back(
          {tile * kernel.tile, std::min(others, (tile + count) * kernel.tile), head, head + 1, rounds(count, 1)});
    }
  }
  return parts;
}

/// Two products forward; for the gradients, the two of the weights again and one or two more.
double flops_of(AttentionPass pass, const AttentionExtents& extents, const Part& part) {
  const bool own_keys = pass == AttentionPass::keys;
  const std::int64_t heads = own_keys ? extents.key_heads * (part.end_head - part.first_head) : extents.heads;
  const std::int64_t scores =
      extents.batch * heads * (part.end - part.first) * (own_keys ? extents.keys : extents.queries);
  const std::int64_t width = extents.c_quads + extents.d_quads;
  const std::int64_t quads = pass == AttentionPass::forward ? width : width + result_quads(pass, extents);
  return 8.0 * static_cast<double>(scores) * static_cast<double>(quads);
}

/// How a mask broadcasts, in quads from one batch, head or query to the next.
struct MaskSteps {
  std::uint32_t kind = 0;  ///< of attention.glsl: none, a number for each key, one for all keys
  std::uint32_t batch = 0, head = 0, row = 0;
};

MaskSteps mask_steps(const plan::Lowering& out, const AttentionTensors& tensors, std::int64_t keys) {
  if (!tensors.mask) return {};
  Shape shape = out.type(*tensors.mask).shape;
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  const std::int64_t quads = plan::layout(shape).quads_per_row();
  const auto step = [&](std::int64_t extent, std::int64_t quads_apart) {
    return extent == 1 ? 0U : index32(out, quads_apart);
  };
  return {shape[3] == keys && keys > 1 ? 1U : 2U, step(shape[0], shape[1] * shape[2] * quads),
          step(shape[1], shape[2] * quads), step(shape[2], quads)};
}

/// The operands in the order of the bindings of attention.glsl; the result comes where the pass has it.
std::vector<plan::Operand> operands_of(AttentionPass pass, const AttentionTensors& t, plan::Operand carried,
                                       plan::TensorId noise_key) {
  const Access statistics = pass == AttentionPass::forward ? Access::write : Access::read;
  std::vector<plan::Operand> operands{{t.q, Access::read},
                                      {t.k, Access::read},
                                      {t.v, Access::read},
                                      {t.mask.value_or(t.q), Access::read},
                                      {t.padding.value_or(t.q), Access::read},
                                      {noise_key, Access::read},
                                      carried,
                                      {t.largest, statistics},
                                      {t.inverse_total, statistics}};
  switch (pass) {
    case AttentionPass::forward:
      operands.push_back({t.y, Access::write});
      break;
    case AttentionPass::queries:
      operands.insert(operands.end(),
                      {{t.dy, Access::read}, {t.y, Access::read}, {t.delta, Access::write}, {t.dq, Access::write}});
      break;
    case AttentionPass::keys:
      operands.insert(operands.end(),
                      {{t.dy, Access::read}, {t.delta, Access::read}, {t.dv, Access::write}, {t.dk, Access::write}});
      break;
  }
  return operands;
}

/// The result that is stored through an expression, and its operand.
std::pair<plan::TensorId, std::uint32_t> result_of(AttentionPass pass, const AttentionTensors& tensors) {
  if (pass == AttentionPass::forward) return {tensors.y, 9};
  if (pass == AttentionPass::queries) return {tensors.dq, 12};
  return {tensors.dv, 11};
}

/// Refuses sizes that 32-bit indices do not reach.
void check_sizes(const plan::Lowering& out, const AttentionTensors& tensors, const AttentionExtents& extents,
                 bool draws) {
  for (const plan::TensorId tensor : {tensors.q, tensors.k, tensors.v}) {
    index32(out, plan::layout(out.type(tensor).shape).padded_elements());
  }
  if (draws) index32(out, extents.batch * extents.heads * extents.queries * plan::divided_up(extents.keys, 4));
}

/// The kernel of a pass. Both passes of the gradients have the same.
AttentionKernel chosen_kernel(plan::Lowering& out, AttentionPass pass, const AttentionTensors& tensors,
                              const AttentionSettings& settings, const AttentionExtents& extents) {
  const DType dtype = out.type(tensors.q).dtype;
  std::vector<AttentionKernel> kernels = attention_kernels(out.target(), pass, extents, dtype);
  const std::size_t chosen = out.choose(attention_choice(out, pass, tensors, settings, kernels));
  return std::move(kernels[chosen]);
}

/// What all parts of a pass have in common.
struct Plan {
  AttentionKernel kernel;
  AttentionExtents extents;
  MaskSteps mask;
  plan::Noise noise;
  std::int64_t own_heads = 0;  ///< of all batches
  std::int64_t own_tiles = 0;  ///< of a head
  std::vector<Part> parts;
};

Plan plan_of(plan::Lowering& out, AttentionPass pass, const AttentionTensors& tensors,
             const AttentionSettings& settings) {
  const bool draws = settings.dropout != 0;
  const bool own_keys = pass == AttentionPass::keys;
  Plan plan;
  plan.extents = extents_of(out, tensors);
  const AttentionExtents& extents = plan.extents;
  check_sizes(out, tensors, extents, draws);
  plan.kernel = chosen_kernel(out, pass, tensors, settings, extents);
  plan.mask = mask_steps(out, tensors, extents.keys);
  plan.noise = draws ? out.noise(settings.noise) : plan::Noise{tensors.q, 0};
  plan.own_heads = extents.batch * (own_keys ? extents.key_heads : extents.heads);
  plan.own_tiles = plan::divided_up(own_keys ? extents.keys : extents.queries, plan.kernel.own_rows);
  plan.parts = parts_of(out, plan.kernel, own_keys ? extents.queries : extents.keys,
                        own_keys ? extents.heads / extents.key_heads : 1, settings.segments);
  return plan;
}

Push push_of(const plan::Lowering& out, const Plan& plan, const Part& part, const AttentionSettings& settings) {
  const AttentionExtents& extents = plan.extents;
  return {index32(out, extents.queries),
          index32(out, extents.keys),
          index32(out, extents.heads),
          index32(out, extents.heads / extents.key_heads),
          index32(out, plan.own_heads),
          index32(out, plan.own_tiles),
          index32(out, std::min(settings.window, std::max(extents.queries, extents.keys))),
          index32(out, part.first),
          index32(out, part.end),
          index32(out, part.first_head),
          index32(out, part.end_head),
          plan.mask.batch,
          plan.mask.head,
          plan.mask.row,
          settings.scale,
          plan.noise.stream,
          dropped_below(settings.dropout),
          1 / (1 - settings.dropout)};
}

}  // namespace

plan::TensorId lower_segments(plan::Lowering& out, plan::TensorId segments) {
  struct SegmentsPush {
    std::uint32_t batches, rows;
  };
  const Shape shape = out.type(segments).shape;
  const plan::TensorId searched =
      out.workspace("segments", {DType::u32, {shape[0], plan::divided_up(shape[1], 4) * 4 + 4}});
  const std::uint32_t local_size = flat_local_size(out.target());
  out.dispatch({.label = out.label() + " segments",
                .shader = "attention_segments",
                .constants = {local_size},
                .push = plan::push_bytes(SegmentsPush{index32(out, shape[0]), index32(out, shape[1])}),
                .operands = {{segments, Access::read}, {searched, Access::write}},
                .groups = plan::groups_for(out.target(), shape[0] * local_size, local_size),
                .rounds = plan::divided_up(shape[1], local_size) + 1});
  return searched;
}

void lower_attention(plan::Lowering& out, AttentionPass pass, const AttentionTensors& tensors,
                     const AttentionSettings& settings) {
  const Plan plan = plan_of(out, pass, tensors, settings);
  const AttentionExtents& extents = plan.extents;
  plan::TensorId carried = tensors.q;
  if (plan.parts.size() > 1) {
    carried = out.workspace("sums", {DType::f32,
                                     {plan.own_heads * plan.own_tiles * plan.kernel.own_rows,
                                      4 * (extents.c_quads + extents.d_quads + 1)}});
  }
  const auto [result, operand] = result_of(pass, tensors);
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const Part& part = plan.parts[i];
    const bool resumed = i > 0;
    const bool continued = i + 1 < plan.parts.size();
    const Access access = resumed && continued ? Access::read_write : continued ? Access::write : Access::read;
    const std::uint32_t local_size = plan.kernel.local_size;
    std::vector<std::uint32_t> constants{local_size,
                                         index32(out, extents.c_quads),
                                         index32(out, extents.d_quads),
                                         settings.causal,
                                         settings.window > 0,
                                         tensors.padding && !settings.segments,
                                         plan.mask.kind,
                                         settings.dropout != 0,
                                         resumed,
                                         continued,
                                         settings.segments};
    constants.insert(constants.end(), plan.kernel.constants.begin(), plan.kernel.constants.end());
    out.dispatch({.label = pass == AttentionPass::forward ? "" : fmt::format("{} {}", out.label(), name(pass)),
                  .shader = plan.kernel.shader,
                  .constants = std::move(constants),
                  .push = plan::push_bytes(push_of(out, plan, part, settings)),
                  .operands = operands_of(pass, tensors, {carried, access}, plan.noise.key),
                  .groups = plan::groups_for(out.target(), plan.own_heads * plan.own_tiles * local_size, local_size),
                  .rounds = part.rounds,
                  .expression = result_expression(out, result, operand, pass == AttentionPass::forward ? 10 : 13),
                  .flops = flops_of(pass, extents, part)});
  }
}

}  // namespace halfstep::ops
