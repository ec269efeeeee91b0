#include "harness/kernel_targets.h"

#include <map>
#include <string>
#include <utility>

#include "harness/device.h"
#include "ops/gemm/gemm_kernels.h"

namespace halfstep::testing {

std::vector<plan::Target> kernel_targets() {
  std::map<std::string, plan::Target> found;
  for (plan::Target target : product_targets()) {
    target.float16.dots = !target.cpu;  // drivers without the instruction compute what it means
    for (const ops::Operands operands : {ops::Operands::row_row, ops::Operands::col_row}) {
      target.gemm_kernels.clear();
      for (const auto& kernel : ops::gemm_kernels(target, {.operands = operands, .dtype = DType::f16, .columns = 8})) {
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
