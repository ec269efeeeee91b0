#pragma once

#include <vulkan/vulkan.h>

#include <string>
#include <vector>

#include "vk/device/context.h"

namespace halfstep::vk {

/// A number that a driver tells of the code it compiled, with its own name and description of it: "SGPRs", "Latency".
struct Statistic {
  std::string name;
  std::string description;
  double value = 0;
};

/// What a driver compiled a pipeline, or a stage of it, to.
struct Executable {
  std::string name;
  std::uint32_t subgroup_size = 0;
  std::vector<Statistic> statistics;
  std::string disassembly;  ///< the last text that the driver gives: the machine's instructions; empty if it gives none
};

/// The executables of a pipeline that was made with Pipelines::Capture::yes. (VK_KHR_pipeline_executable_properties.)
/// Throws Error if the driver cannot tell.
std::vector<Executable> executables_of(const Context& context, VkPipeline pipeline);

}  // namespace halfstep::vk
