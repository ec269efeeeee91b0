#include "ops/rows.h"

#include <algorithm>
#include <bit>

#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

/// Invocations that share a row: one on a software driver; elsewhere as many as have four quads of it each.
std::uint32_t lanes_for(const plan::Target& target, std::int64_t quads_per_row) {
  if (target.cpu) return 1;
  return std::bit_floor(static_cast<std::uint32_t>(std::clamp<std::int64_t>(quads_per_row / 4, 1, 64)));
}

/// One workgroup where there is little to do: it makes the mean too, which saves a dispatch.
std::uint32_t groups_for_rows(const plan::Target& target, const plan::Layout& lay, std::uint32_t rows_at_once) {
  constexpr std::int64_t little = 2048;
  if (lay.quads() <= little) return 1;
  const std::int64_t needed = (lay.rows + rows_at_once - 1) / rows_at_once;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(needed, 4 * std::int64_t{target.wanted_groups}));
}

}  // namespace

Shape statistics_shape(std::int64_t rows) {
  return {rows + 1, 3};
}

void lower_rows(plan::Lowering& out, const std::string& shader, plan::TensorId statistics,
                const std::vector<std::uint32_t>& constants) {
  struct Push {
    std::uint32_t rows;
    std::uint32_t classes;
    std::uint32_t quads_per_row;
  };
  const TensorType& logits = out.input_type(0);
  const plan::Layout lay = plan::layout(logits.shape);
  index32(out, lay.padded_elements());
  const Push push{index32(out, lay.rows), index32(out, lay.columns), index32(out, lay.quads_per_row())};
  const std::uint32_t local_size = std::bit_floor(flat_local_size(out.target()));
  const std::uint32_t lanes = lanes_for(out.target(), lay.quads_per_row());
  const std::uint32_t groups = groups_for_rows(out.target(), lay, local_size / lanes);
  std::vector<std::uint32_t> all{local_size, lanes};
  all.insert(all.end(), constants.begin(), constants.end());
  out.dispatch({.label = {},
                .shader = shader + "." + out.storage(logits.dtype),
                .constants = std::move(all),
                .push = plan::push_bytes(push),
                .operands = {{out.input(0), plan::Access::read},
                             {out.input(1), plan::Access::read},
                             {statistics, plan::Access::write},
                             {out.output(0), plan::Access::write}},
                .groups = {groups, 1, 1}});
  if (groups == 1) return;
  out.dispatch({.label = {},
                .shader = "row_mean",
                .constants = {local_size},
                .push = plan::push_bytes(push.rows),
                .operands = {{statistics, plan::Access::read_write}, {out.output(0), plan::Access::write}},
                .groups = {1, 1, 1}});
}

}  // namespace halfstep::ops
