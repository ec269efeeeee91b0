#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <string>
#include <vector>

namespace samples {

/// What one epoch came to.
struct EpochResult {
  double loss = 0;  ///< mean over its steps, unscaled
  double seconds = 0;
  double samples_per_second = 0;
  double test_accuracy = 0;  ///< share of the test set, from 0 to 1
};

/// What --json writes.
struct Report {
  std::string device;
  std::string precision;
  std::vector<EpochResult> epochs;
  halfstep::StepReport last_step;
  halfstep::PlanSummary plan;
  halfstep::HostCosts host;
};

/// Writes the report, whole or not at all.
void write_json(const Report& report, const std::filesystem::path& path);

}  // namespace samples
