#pragma once

#include <halfstep/halfstep.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace samples {

/// The results of one epoch, or between two evaluations where training is not counted in epochs.
struct EpochResult {
  double loss = 0;          ///< mean over its steps, unscaled
  std::uint64_t steps = 0;  ///< of the mean: those since a resume, where the run was resumed within the epoch
  double seconds = 0;
  double samples_per_second = 0;
  std::optional<double> test_accuracy{};   ///< fraction of the test set, from 0 to 1, if it is tested
  std::map<std::string, double> scores{};  ///< Plan::scores, or a program's own
};

/// The contents of the --json file.
struct Report {
  std::string device;
  std::string precision;
  std::vector<EpochResult> epochs;
  halfstep::StepReport last_step;
  halfstep::PlanSummary plan;
  halfstep::HostCosts host;
  double seconds = 0;  ///< of training and testing
  int ranks = 1;
  halfstep::ExchangeCosts exchange{};  ///< of rank 0, in these seconds
};

/// Measures what a training takes, from here on.
class RunCosts {
 public:
  explicit RunCosts(const halfstep::Ranks& ranks);
  /// Notes it in a report.
  void take(Report& report) const;

 private:
  const halfstep::Ranks& ranks_;
  halfstep::ExchangeCosts before_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Writes the report atomically.
void write_json(const Report& report, const std::filesystem::path& path);

}  // namespace samples
