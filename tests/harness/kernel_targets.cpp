#include "harness/kernel_targets.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "harness/device.h"
#include "ops/gemm/gemm_kernels.h"

namespace halfstep::testing {

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
  std::vector<plan::Target> all;
  all.reserve(found.size());
  for (auto& [name, target] : found) all.push_back(std::move(target));
  return all;
}

}  // namespace halfstep::testing
