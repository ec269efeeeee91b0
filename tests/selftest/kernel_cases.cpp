// Halfstep's own ways to compute products and attention, by the checks that admit them (engine/tune).
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>

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
  bool float8 = false;
};

/// Every kind that there are kernels for.
const std::array<Products, 5> all_products{
    {{DType::f32}, {DType::f16}, {DType::f16, true}, {DType::f16, false, true}, {DType::bf16}}};

/// What tells kernels apart: their names, shaders and matrices. Several kinds of products have the same.
using Known = std::set<std::tuple<std::string, std::string, plan::MatrixType>>;

/// The names of the kernels of a device for products, those of matrix units or all others, that are not known yet.
std::set<std::string> product_kernels(vk::Context& context, ops::Operands operands, const Products& products,
                                      bool risky, Known& known) {
  std::set<std::string> names;
  const bool of_patches = operands == ops::Operands::patches_row || operands == ops::Operands::patches_col;
  for (const std::int64_t size : {std::int64_t{16}, std::int64_t{2048}}) {
    const ops::Problem problem{.operands = operands,
                               .dtype = products.dtype,
                               .float16_partials = products.float16_partials,
                               .float8 = products.float8,
                               .rows = size,
                               .columns = size,
                               .k = size,
                               .operand_quads = size * size / 4,
                               .winograd_tiles = of_patches && products.dtype == DType::f32 ? size / 4 : 0};
    for (const ops::GemmKernel& kernel : ops::gemm_kernels(context.target(), problem)) {
      const bool is_new = kernel.risky == risky && known.emplace(kernel.name, kernel.shader, kernel.matrices).second;
      if (is_new) names.insert(kernel.name);
    }
  }
  return names;
}

/// Adds a fault for each new kernel that is wrong, and returns how many there are.
std::size_t check_products(CaseReport& report, vk::Context& context, const Products& products, bool risky,
                           Known& known) {
  using ops::Operands;
  vk::Pipelines pipelines(context);
  std::size_t count = 0;
  for (const Operands operands : {Operands::row_row, Operands::row_col, Operands::col_row, Operands::col_col,
                                  Operands::patches_row, Operands::patches_col, Operands::pixels_row}) {
    const std::string kind =
        fmt::format("gemm {} {} {}", ops::name(operands), products.float8 ? "float8" : name(products.dtype),
                    products.float16_partials ? "f16" : "f32");
    for (const std::string& kernel : product_kernels(context, operands, products, risky, known)) {
      try {
        const std::string wrong = tune::check(context, pipelines, context.target(), kind, kernel);
        if (!wrong.empty()) add_fault(report, fmt::format("{} by {}: {}", kind, kernel, wrong));
      } catch (const Error& error) {
        add_fault(report, fmt::format("{} by {}: {}", kind, kernel, error.what()));
        if (error.code() == ErrorCode::device_lost) throw;  // all others would only fail
      }
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
  Known known;
  std::size_t count = 0;
  for (const Products& products : all_products) count += check_products(report, context, products, true, known);
  tell_kernels(report, count);
}

void check_others(CaseReport& report, DType dtype) {
  Known known;
  std::size_t count = 0;
  for (const Products& products : all_products) {
    if (products.dtype == dtype) count += check_products(report, testing::context(), products, false, known);
  }
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
                     Wanted::normal, [dtype](CaseReport& report) { check_others(report, dtype); }});
  }
  cases.push_back({"kernel/matrix units", "Products by cooperative matrices, in every shape that the device reports",
                   Wanted::quick, [](CaseReport& report) { check_matrix_units(report, testing::context()); }});
  cases.push_back({"kernel/emulated matrix units", "The same of a software driver, which Halfstep does not use",
                   Wanted::full, check_emulated_units});
  return cases;
}

}  // namespace halfstep::selftest
