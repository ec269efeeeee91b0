#include "ops/gemm_panels.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include "ops/cast.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

constexpr std::int64_t panel_columns = 32;

std::int64_t divided_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// {batches x panels, k of all segments, columns of a panel}.
Shape panels_shape(const Gemm& gemm) {
  return {gemm.batches * divided_up(gemm.columns, panel_columns), gemm.segments * divided_up(gemm.k, 4) * 4,
          panel_columns};
}

}  // namespace

Operands with_panels(Operands operands) {
  if (operands == Operands::row_col) return Operands::row_row;
  if (operands == Operands::patches_col) return Operands::patches_row;
  return operands;
}

Gemm lower_panels(plan::Lowering& out, const Gemm& gemm) {
  struct Push {
    std::uint32_t count, columns, k, segments, panels, pitch, b_batch;
  };
  const auto size = [&](std::int64_t value) { return index32(out, value); };
  const bool by_row = with_panels(gemm.operands) == gemm.operands;
  const std::int64_t panels = divided_up(gemm.columns, panel_columns);
  Gemm result = gemm;
  result.operands = with_panels(gemm.operands);
  result.a = in_f32(out, gemm.a);
  result.b = out.workspace("panels", {DType::f32, panels_shape(gemm)});
  const std::int64_t quads = plan::layout(out.type(result.b).shape).quads();
  result.b_batch = quads / gemm.batches;
  const Push push{size(quads / 4),     size(gemm.columns), size(gemm.k),
                  size(gemm.segments), size(panels),       size(plan::layout(out.type(gemm.b).shape).quads_per_row()),
                  size(gemm.b_batch)};
  dispatch_flat(
      out,
      fmt::format("gemm_panels.{}.{}", by_row ? "row" : "col", out.type(gemm.b).dtype == DType::f16 ? "packed" : "f32"),
      quads / 4, push, {{gemm.b, plan::Access::read}, {result.b, plan::Access::write}});
  return result;
}

}  // namespace halfstep::ops
