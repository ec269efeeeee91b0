// Halfstep's own ways to compute products and attention, by the checks that admit them (engine/tune).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/device.h"
#include "ops/gemm/gemm_kernels.h"
#include "selftest/cases.h"
#include "tune/admission.h"

namespace halfstep::selftest {
namespace {

/// The names of the kernels for products of a type on the device, risky ones or all others.
std::set<std::string> product_kernels(ops::Operands operands, DType dtype, bool risky) {
  std::set<std::string> names;
  for (const std::int64_t size : {std::int64_t{16}, std::int64_t{2048}}) {
    const ops::Problem problem{.operands = operands,
                               .dtype = dtype,
                               .rows = size,
                               .columns = size,
                               .k = size,
                               .operand_quads = size * size / 4};
    for (const ops::GemmKernel& kernel : ops::gemm_kernels(testing::context().target(), problem)) {
      if (kernel.risky == risky) names.insert(kernel.name);
    }
  }
  return names;
}

void check_kernels(CaseReport& report, const std::string& kind, const std::set<std::string>& names) {
  for (const std::string& kernel : names) {
    const std::string wrong = tune::check(testing::context(), *testing::pipelines(), kind, kernel);
    if (!wrong.empty()) add_fault(report, fmt::format("{} by {}: {}", kind, kernel, wrong));
  }
}

void check_products(CaseReport& report, DType dtype, bool risky) {
  using ops::Operands;
  std::size_t count = 0;
  for (const Operands operands : {Operands::row_row, Operands::row_col, Operands::col_row, Operands::col_col,
                                  Operands::patches_row, Operands::patches_col, Operands::pixels_row}) {
    const std::set<std::string> names = product_kernels(operands, dtype, risky);
    check_kernels(report, fmt::format("gemm {} {} f32", ops::name(operands), name(dtype)), names);
    count += names.size();
  }
  if (count == 0) return set_missing(report, "there are no such kernels for the device");
  report.facts.push_back(fmt::format("{} kernels", count));
}

}  // namespace

std::vector<Case> kernel_cases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    cases.push_back({fmt::format("kernel/products {}", name(dtype)),
                     fmt::format("Every kernel that may compute matrix products of {} on the device, as it is admitted",
                                 name(dtype)),
                     Wanted::normal, [dtype](CaseReport& report) { check_products(report, dtype, false); }});
  }
  cases.push_back({"kernel/matrix units", "Products by cooperative matrices, in every shape that the device reports",
                   Wanted::quick, [](CaseReport& report) { check_products(report, DType::f16, true); }});
  return cases;
}

}  // namespace halfstep::selftest
