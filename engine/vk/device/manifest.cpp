#include "vk/device/manifest.h"

#include <halfstep/process.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace halfstep::vk {
namespace {

std::optional<std::string> problem_with(const std::string& file) {
  const auto expected = [&](std::string_view got) {
    return fmt::format("expected a driver's manifest in JSON, got {} in {}", got, file);
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) return {};  // the loader searches it for manifests
  std::ifstream stream(file);
  if (!stream) return expected("no readable file");
  const nlohmann::json manifest = nlohmann::json::parse(stream, nullptr, false);
  if (manifest.is_discarded()) return expected("other text");
  const bool names_library = manifest.is_object() && manifest.contains("ICD") && manifest["ICD"].is_object() &&
                             manifest["ICD"].contains("library_path") && manifest["ICD"]["library_path"].is_string();
  if (!names_library) return expected("no library_path of an ICD");
  return {};
}

}  // namespace

std::optional<std::string> damaged_manifest() {
#if defined(_WIN32)
  constexpr char separator = ';';
#else
  constexpr char separator = ':';
#endif
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"}) {
    std::istringstream files(environment(variable).value_or(""));
    for (std::string file; std::getline(files, file, separator);) {
      if (file.empty()) continue;
      if (const auto problem = problem_with(file)) return fmt::format("{}, named by {}", *problem, variable);
    }
  }
  return {};
}

}  // namespace halfstep::vk
