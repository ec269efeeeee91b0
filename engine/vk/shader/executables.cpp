#include "vk/shader/executables.h"

#include <algorithm>

#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {
namespace {

double value_of(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32 == VK_TRUE ? 1 : 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return static_cast<double>(statistic.value.u64);
    default:
      return statistic.value.f64;
  }
}

std::vector<Statistic> statistics_of(const Context& context, const VkPipelineExecutableInfoKHR& info) {
  const auto get = context.table().vkGetPipelineExecutableStatisticsKHR;
  std::uint32_t count = 0;
  check(get(context.device(), &info, &count, nullptr), "vkGetPipelineExecutableStatisticsKHR");
  std::vector<VkPipelineExecutableStatisticKHR> found(
      count, structure<VkPipelineExecutableStatisticKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR));
  check(get(context.device(), &info, &count, found.data()), "vkGetPipelineExecutableStatisticsKHR");
  std::vector<Statistic> statistics;
  for (const auto& each : found) statistics.push_back({each.name, each.description, value_of(each)});
  return statistics;
}

std::string disassembly_of(const Context& context, const VkPipelineExecutableInfoKHR& info) {
  const auto get = context.table().vkGetPipelineExecutableInternalRepresentationsKHR;
  constexpr const char* call = "vkGetPipelineExecutableInternalRepresentationsKHR";
  std::uint32_t count = 0;
  check(get(context.device(), &info, &count, nullptr), call);
  std::vector<VkPipelineExecutableInternalRepresentationKHR> found(
      count, structure<VkPipelineExecutableInternalRepresentationKHR>(
                 VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR));
  check(get(context.device(), &info, &count, found.data()), call);  // their sizes
  std::vector<std::string> texts(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    texts[i].resize(found[i].dataSize);
    found[i].pData = texts[i].data();
  }
  check(get(context.device(), &info, &count, found.data()), call);
  for (std::size_t i = found.size(); i > 0; --i) {
    if (found[i - 1].isText == VK_FALSE) continue;
    std::string& text = texts[i - 1];
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
  }
  return "";
}

}  // namespace

std::vector<Executable> executables_of(const Context& context, VkPipeline pipeline) {
  auto info = structure<VkPipelineInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR);
  info.pipeline = pipeline;
  const auto get = context.table().vkGetPipelineExecutablePropertiesKHR;
  std::uint32_t count = 0;
  check(get(context.device(), &info, &count, nullptr), "vkGetPipelineExecutablePropertiesKHR");
  std::vector<VkPipelineExecutablePropertiesKHR> found(
      count, structure<VkPipelineExecutablePropertiesKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR));
  check(get(context.device(), &info, &count, found.data()), "vkGetPipelineExecutablePropertiesKHR");
  std::vector<Executable> executables;
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    auto which = structure<VkPipelineExecutableInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
    which.pipeline = pipeline;
    which.executableIndex = i;
    executables.push_back(
        {found[i].name, found[i].subgroupSize, statistics_of(context, which), disassembly_of(context, which)});
  }
  return executables;
}

}  // namespace halfstep::vk
