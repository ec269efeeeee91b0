#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace samples {

/// The results of one epoch.
struct EpochResult {
  double loss = 0;  ///< mean over its steps, unscaled
  double seconds = 0;
  double samples_per_second = 0;
  double test_accuracy = 0;                ///< fraction of the test set, from 0 to 1
  std::map<std::string, double> scores{};  ///< Plan::scores
};

/// The contents of the --json file.
struct Report {
  std::string device;
  std::string precision;
  std::vector<EpochResult> epochs;
  halfstep::StepReport last_step;
  halfstep::PlanSummary plan;
  halfstep::HostCosts host;
};

/// Writes the report atomically.
void write_json(const Report& report, const std::filesystem::path& path);

}  // namespace samples
