#include "harness/kernel_targets.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "harness/device.h"
#include "ops/gemm/gemm_kernels.h"

namespace halfstep::testing {
namespace {

constexpr std::string_view kinds_by_address[] = {"outer", "uniform"};

}  // namespace

bool takes_kernels_by_address() {
  return targets().front().uniform_loads;
}

bool loads_by_address(const plan::Target& target) {
  const auto is_kind = [&](std::string_view kind) { return target.gemm_kernels.starts_with(kind); };
  return std::ranges::any_of(kinds_by_address, is_kind);
}

std::vector<plan::Target> kernel_targets() {
  // Operands of tests have fewer quads than a texel buffer has at least, on any device of Vulkan.
  constexpr std::int64_t quads = 65'536;
  std::map<std::string, plan::Target> found;
  for (plan::Target target : product_targets()) {
    target.float16.dots = !target.cpu;  // drivers without the instruction compute what it means
    for (const ops::Operands operands : {ops::Operands::row_row, ops::Operands::col_row}) {
      target.gemm_kernels.clear();
      const ops::Problem problem{.operands = operands,
                                 .dtype = DType::f16,
                                 .columns = 8,
                                 .operand_quads = quads,
                                 .row_taps = 3,
                                 .row_positions = 8};
      for (const auto& kernel : ops::gemm_kernels(target, problem)) {
        target.gemm_kernels = kernel.name;
        found.emplace(kernel.name, target);
      }
    }
  }
  if (!takes_kernels_by_address()) {
    for (const std::string_view kind : kinds_by_address) {
      std::string kept;
      for (const auto& [name, target] : found) {
        if (name.starts_with(kind)) kept = name;
      }
      std::erase_if(found, [&](const auto& entry) { return entry.first.starts_with(kind) && entry.first != kept; });
    }
  }
  std::vector<plan::Target> all;
  all.reserve(found.size());
  for (auto& [name, target] : found) all.push_back(std::move(target));
  return all;
}

std::vector<plan::Target> attention_targets() {
  std::vector<plan::Target> all = targets();
  if (on_swiftshader()) {
    all.resize(1);
  } else if (all.front().cpu) {
    all.push_back(all.front());
    all.back().score_bytes = 0;
  }
  return all;
}

}  // namespace halfstep::testing
