#pragma once

#include <halfstep/device.h>

#include <filesystem>
#include <string>

#include "vk/device/limits.h"

namespace halfstep::vk {

/// DeviceSettings with all values resolved.
struct Settings {
  std::string tier;
  bool fusion = true;
  Tuning tuning = Tuning::on;
  std::string gemm;
  double submit_milliseconds = 0;
  std::filesystem::path cache_folder;  ///< empty: nothing is stored
  bool validation = false;
  bool low_priority = false;
  bool may_fork = true;
  Limits limits;
};

/// Takes members that `chosen` does not set from the environment. Throws Error for values that are not listed at
/// DeviceSettings.
Settings settings(const DeviceSettings& chosen);

}  // namespace halfstep::vk
