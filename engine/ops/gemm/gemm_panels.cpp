#include "ops/gemm/gemm_panels.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include "graph/dtype.h"
#include "ops/elementwise/cast.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

/// k summed over all segments, each in whole quads.
std::int64_t whole_k(const Gemm& gemm) {
  return gemm.segments * plan::divided_up(gemm.k, 4) * 4;
}

/// In quads.
struct Panels {
  std::int64_t count;  ///< per batch
  std::int64_t batch;  ///< distance between batches
  std::int64_t all;
  std::int64_t zeros;  ///< before the panels: as many as a segment has, rounded up to fours
};

Panels panels_of(const Gemm& gemm, std::int64_t panel_columns) {
  Panels panels{};
  panels.count = plan::divided_up(gemm.columns, panel_columns);
  panels.batch = panels.count * whole_k(gemm) * panel_columns / 4;
  panels.all = panels.batch * gemm.batches;
  panels.zeros = plan::divided_up(gemm.k, 16) * 4;
  return panels;
}

}  // namespace

Operands with_panels(Operands operands) {
  if (operands == Operands::row_col) return Operands::row_row;
  if (operands == Operands::col_col) return Operands::col_row;
  if (operands == Operands::patches_col) return Operands::patches_row;
  return operands;
}

Gemm lower_panels(plan::Lowering& out, const Gemm& gemm, std::int64_t panel_columns, std::uint32_t lanes) {
  struct Push {
    std::uint32_t count, columns, k, segments, panels, pitch, b_batch;
  };
  const auto size = [&](std::int64_t value) { return index32(out, value); };
  const bool by_row = with_panels(gemm.operands) == gemm.operands;
  const Panels panels = panels_of(gemm, panel_columns);
  Gemm result = gemm;
  result.operands = with_panels(gemm.operands);
  result.a = in_f32(out, gemm.a);
  result.b = out.workspace("panels", {DType::f32, {panels.zeros + panels.all, 4}});
  result.b_batch = panels.batch;
  const std::int64_t columns = panel_columns / lanes;  // of an invocation of the GEMM kernel
  const std::int64_t count = panels.all / (by_row ? columns : 4);
  const Push push{size(count),         size(gemm.columns), size(gemm.k),
                  size(gemm.segments), size(panels.count), size(plan::layout(out.type(gemm.b).shape).quads_per_row()),
                  size(gemm.b_batch)};
  dispatch_flat(out,
                fmt::format("gemm_panels.{}.{}", by_row ? "row" : "col", graph::info(out.type(gemm.b).dtype).words),
                count, push, {{gemm.b, plan::Access::read}, {result.b, plan::Access::write}}, {lanes, size(columns)});
  return result;
}

}  // namespace halfstep::ops
