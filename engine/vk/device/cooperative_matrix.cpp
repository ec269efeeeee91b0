#include "vk/device/cooperative_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>

#include "vk/device/result.h"
#include "vk/shader/shaders.h"

namespace halfstep::vk {
namespace {

constexpr std::int32_t component_float16 = 0;
constexpr std::int32_t component_float32 = 1;
constexpr std::int32_t component_bfloat16 = 1000141000;
constexpr std::int32_t component_float8_e4m3 = 1000491002;
constexpr std::int32_t scope_subgroup = 3;

/// The type of factors that kernels have, if they have such.
std::optional<plan::MatrixType> type_of(std::int32_t component) {
  switch (component) {
    case component_float16:
      return plan::MatrixType::float16;
    case component_bfloat16:
      return plan::MatrixType::bfloat16;
    case component_float8_e4m3:
      return plan::MatrixType::float8;
    default:
      return std::nullopt;
  }
}

bool usable(const CooperativeMatrixProperties& p) {
  const bool sums =
      p.ResultType == component_float32 || (p.AType == component_float16 && p.ResultType == component_float16);
  return type_of(p.AType) && sums && p.BType == p.AType && p.CType == p.ResultType && p.scope == scope_subgroup &&
         p.saturatingAccumulation == VK_FALSE && p.MSize != 0 && p.NSize != 0 && p.KSize != 0;
}

constexpr std::string_view type_names[] = {"f16", "bf16", "float8"};

std::string_view type_name(plan::MatrixType type) {
  return type_names[static_cast<std::size_t>(type)];
}

}  // namespace

bool cooperative_shaders_built() {
  return has_shader("gemm_cooperative") && has_shader("attention_cooperative");
}

std::vector<plan::MatrixShape> matrix_shapes(const InstanceTable& instance, VkPhysicalDevice device) {
  constexpr const char* call = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
  const auto query = reinterpret_cast<MatrixQuery>(instance.get_proc(instance.instance, call));
  if (query == nullptr) return {};
  std::uint32_t count = 0;
  check(query(device, &count, nullptr), call);
  std::vector<CooperativeMatrixProperties> found(count);
  check(query(device, &count, found.data()), call);
  found.resize(count);
  std::vector<plan::MatrixShape> shapes;
  for (const CooperativeMatrixProperties& p : found) {
    if (!usable(p)) continue;
    shapes.push_back({p.MSize, p.NSize, p.KSize, p.ResultType == component_float16, *type_of(p.AType)});
  }
  std::ranges::stable_sort(shapes, std::greater{}, [](const plan::MatrixShape& s) { return s.rows * s.columns * s.k; });
  const auto repeated = std::ranges::unique(shapes);
  shapes.erase(repeated.begin(), repeated.end());
  return shapes;
}

std::string text(const std::vector<plan::MatrixShape>& shapes) {
  std::string all;
  for (const plan::MatrixShape& s : shapes) {
    all += fmt::format("{}{}x{}x{} {} {}", all.empty() ? "" : ", ", s.rows, s.columns, s.k, type_name(s.type),
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
    std::string type;
    std::string sums;
    char times[2];
    if (!(part >> s.rows >> times[0] >> s.columns >> times[1] >> s.k >> type >> sums)) return {};
    const auto* const known = std::ranges::find(type_names, type);
    if (known == std::end(type_names)) return {};
    s.type = static_cast<plan::MatrixType>(known - std::begin(type_names));
    s.float16_sums = sums == "f16";
    shapes.push_back(s);
  }
  return shapes;
}

}  // namespace halfstep::vk
