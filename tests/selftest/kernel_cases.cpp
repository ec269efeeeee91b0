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

/// Products whose kernels are asked for.
struct Products {
  DType dtype = DType::f32;
  bool float16_partials = false;
  bool risky = false;  ///< those of matrix units, or all others
};

/// The names of the kernels of a device for products.
std::set<std::string> product_kernels(vk::Context& context, ops::Operands operands, const Products& products) {
  std::set<std::string> names;
  const bool of_patches = operands == ops::Operands::patches_row || operands == ops::Operands::patches_col;
  for (const std::int64_t size : {std::int64_t{16}, std::int64_t{2048}}) {
    const ops::Problem problem{.operands = operands,
                               .dtype = products.dtype,
                               .float16_partials = products.float16_partials,
                               .rows = size,
                               .columns = size,
                               .k = size,
                               .operand_quads = size * size / 4,
                               .winograd_tiles = of_patches && products.dtype == DType::f32 ? size / 4 : 0};
    for (const ops::GemmKernel& kernel : ops::gemm_kernels(context.target(), problem)) {
      if (kernel.risky == products.risky) names.insert(kernel.name);
    }
  }
  return names;
}

/// Adds a fault for each kernel that is wrong, and returns how many kernels there are.
std::size_t check_products(CaseReport& report, vk::Context& context, const Products& products) {
  using ops::Operands;
  vk::Pipelines pipelines(context);
  std::size_t count = 0;
  for (const Operands operands : {Operands::row_row, Operands::row_col, Operands::col_row, Operands::col_col,
                                  Operands::patches_row, Operands::patches_col, Operands::pixels_row}) {
    const std::string kind = fmt::format("gemm {} {} {}", ops::name(operands), name(products.dtype),
                                         products.float16_partials ? "f16" : "f32");
    for (const std::string& kernel : product_kernels(context, operands, products)) {
      const std::string wrong = tune::check(context, pipelines, context.target(), kind, kernel);
      if (!wrong.empty()) add_fault(report, fmt::format("{} by {}: {}", kind, kernel, wrong));
      ++count;
    }
  }
  return count;
}

void tell_kernels(CaseReport& report, std::size_t count) {
  if (count == 0) return set_missing(report, "there are no such kernels for the device");
  report.facts.push_back(fmt::format("{} kernels", count));
}

void check_matrix_units(CaseReport& report, vk::Context& context) {
  std::size_t count = 0;
  for (const bool float16_partials : {false, true})
    count += check_products(report, context, {DType::f16, float16_partials, true});
  count += check_products(report, context, {DType::bf16, false, true});
  tell_kernels(report, count);
}

/// Halfstep does not ask a software driver for its matrix units, unless it is told to.
void check_emulated_units(CaseReport& report) {
  if (!testing::context().target().cpu) return set_missing(report, "the device is no software driver");
  if (!testing::context().capabilities().cooperative_matrix)
    return set_missing(report, "the device has no matrix units (VK_KHR_cooperative_matrix)");
  const Device device = Device::open({}, {.gemm = "cooperative"});
  check_matrix_units(report, vk::context_of(device));
}

}  // namespace

std::vector<Case> kernel_cases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    cases.push_back({fmt::format("kernel/products {}", name(dtype)),
                     fmt::format("Every kernel that may compute matrix products of {} on the device, as it is admitted",
                                 name(dtype)),
                     Wanted::normal, [dtype](CaseReport& report) {
                       tell_kernels(report, check_products(report, testing::context(), {.dtype = dtype}));
                     }});
  }
  cases.push_back({"kernel/matrix units", "Products by cooperative matrices, in every shape that the device reports",
                   Wanted::quick, [](CaseReport& report) { check_matrix_units(report, testing::context()); }});
  cases.push_back({"kernel/emulated matrix units", "The same of a software driver, which Halfstep does not use",
                   Wanted::full, check_emulated_units});
  return cases;
}

}  // namespace halfstep::selftest
