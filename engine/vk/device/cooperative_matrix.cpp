#include "vk/device/cooperative_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "vk/shader/shaders.h"

namespace halfstep::vk {
namespace {

constexpr std::int32_t component_float16 = 0;
constexpr std::int32_t component_float32 = 1;
constexpr std::int32_t component_bfloat16 = 1000141000;
constexpr std::int32_t scope_subgroup = 3;

bool usable(const CooperativeMatrixProperties& p) {
  const bool halves =
      p.AType == component_float16 && (p.ResultType == component_float16 || p.ResultType == component_float32);
  const bool brains = p.AType == component_bfloat16 && p.ResultType == component_float32;
  return (halves || brains) && p.BType == p.AType && p.CType == p.ResultType && p.scope == scope_subgroup &&
         p.saturatingAccumulation == VK_FALSE && p.MSize != 0 && p.NSize != 0 && p.KSize != 0;
}

}  // namespace

bool cooperative_shaders_built() {
  return has_shader("gemm_cooperative") && has_shader("attention_cooperative");
}

std::vector<plan::MatrixShape> matrix_shapes(const InstanceTable& instance, VkPhysicalDevice device) {
  const auto query = reinterpret_cast<MatrixQuery>(
      instance.get_proc(instance.instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  std::uint32_t count = 0;
  if (query == nullptr || query(device, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<CooperativeMatrixProperties> found(count);
  if (query(device, &count, found.data()) != VK_SUCCESS) return {};
  found.resize(count);
  std::vector<plan::MatrixShape> shapes;
  for (const CooperativeMatrixProperties& p : found) {
    if (!usable(p)) continue;
    const DType dtype = p.AType == component_float16 ? DType::f16 : DType::bf16;
    shapes.push_back({p.MSize, p.NSize, p.KSize, p.ResultType == component_float16, dtype});
  }
  std::ranges::stable_sort(shapes, std::greater{}, [](const plan::MatrixShape& s) { return s.rows * s.columns * s.k; });
  const auto repeated = std::ranges::unique(shapes);
  shapes.erase(repeated.begin(), repeated.end());
  return shapes;
}

std::string text(const std::vector<plan::MatrixShape>& shapes) {
  std::string all;
  for (const plan::MatrixShape& s : shapes) {
    all += fmt::format("{}{}x{}x{} {} {}", all.empty() ? "" : ", ", s.rows, s.columns, s.k, name(s.dtype),
                       s.float16_sums ? "f16" : "f32");
  }
  return all;
}

std::vector<plan::MatrixShape> matrix_shapes_from(const std::string& text) {
  std::vector<plan::MatrixShape> shapes;
  std::istringstream stream(text);
  for (std::string shape; std::getline(stream, shape, ',');) {
    plan::MatrixShape s;
    std::istringstream part(shape);
    std::string dtype;
    std::string sums;
    char times[2];
    if (!(part >> s.rows >> times[0] >> s.columns >> times[1] >> s.k >> dtype >> sums)) return {};
    s.dtype = dtype == name(DType::bf16) ? DType::bf16 : DType::f16;
    s.float16_sums = sums == "f16";
    shapes.push_back(s);
  }
  return shapes;
}

}  // namespace halfstep::vk
