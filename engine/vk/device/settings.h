#pragma once

#include <halfstep/device.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace halfstep::vk {

/// DeviceSettings with every choice made.
struct Settings {
  std::string tier;
  bool fusion = true;
  Tuning tuning = Tuning::on;
  std::string gemm;
  std::filesystem::path cache_folder;  ///< empty: nothing is kept
  bool validation = false;
  bool may_fork = true;
  /// HALFSTEP_LOOP_LIMIT, for tests: lowers Target::max_rounds.
  std::uint32_t loop_limit = std::numeric_limits<std::uint32_t>::max();
};

/// What `chosen` leaves open is taken from the environment. Throws Error for values that are none of those listed at
/// DeviceSettings.
Settings settings(const DeviceSettings& chosen);

}  // namespace halfstep::vk
