#pragma once

#include <halfstep/device.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

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
  bool may_fork = true;
  /// HALFSTEP_LOOP_LIMIT, for tests: lowers Target::max_rounds.
  std::uint32_t loop_limit = std::numeric_limits<std::uint32_t>::max();
};

/// Takes members that `chosen` does not set from the environment. Throws Error for values that are not listed at
/// DeviceSettings.
Settings settings(const DeviceSettings& chosen);

}  // namespace halfstep::vk
