#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "samples/watch/records.h"

namespace samples {

/// What the records of a run come to.
class RunSummary {
 public:
  void add(const Record& record);

  /// The record that the run, or its last part, began with; a list without entries where there is none.
  const Record& start() const { return start_; }
  /// "finished", "stopped", or "running, or killed" where no end was recorded.
  const std::string& state() const { return state_; }
  /// What is told in one number each: a name, and the number as text.
  std::vector<std::pair<std::string, std::string>> figures() const;

  const std::vector<Record>& evaluations() const { return evaluations_; }
  /// What compiling the run, or its last part, decided.
  const std::vector<std::string>& decisions() const { return decisions_; }

 private:
  Record start_ = Record::array();
  std::string state_ = "running, or killed";
  double seconds_ = 0;          ///< of the last part
  double earlier_seconds_ = 0;  ///< of the parts before
  double step_ = 0;
  double skipped_ = 0;
  std::optional<double> loss_;  ///< of the last step
  std::vector<Record> evaluations_;
  std::vector<std::string> decisions_;
};

/// "1.2 MB" and the like, "90 ms", "1:02:03 h".
std::string byte_text(double bytes);
std::string time_text(double seconds);

}  // namespace samples
