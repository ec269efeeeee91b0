#include "ops/gemm_bodies.h"

#include <algorithm>

namespace halfstep::ops {

Problem problem(const plan::Lowering& out, const Gemm& gemm) {
  const auto quads = [&](plan::TensorId tensor) { return plan::layout(out.type(tensor).shape).quads(); };
  return {.operands = gemm.operands,
          .dtype = out.type(gemm.a).dtype,
          .rows = gemm.rows,
          .columns = gemm.columns,
          .k = gemm.k * gemm.segments,
          .batches = gemm.batches,
          .operand_quads = std::max(quads(gemm.a), quads(gemm.b))};
}

/// Register tiles shared by a subgroup where a software driver's subgroups have a size there is a kernel for; shared
/// memory everywhere else.
std::vector<Body> bodies(const plan::Target& target, const Problem& problem) {
  std::vector<Body> found;
  if (target.cpu && target.subgroup_shuffle && target.subgroup_size == 8) {
    if (problem.operand_quads <= target.max_texels) found.push_back({"lanes8_texels", 8, 32, 32, true});
    found.push_back({"lanes8", 8, 32, 32});
  }
  if (target.cpu && target.subgroup_broadcast && target.subgroup_size == 4) found.push_back({"lanes4", 4, 8, 16});
  found.push_back({"tile", 128, 64, 64});
  return found;
}

}  // namespace halfstep::ops
