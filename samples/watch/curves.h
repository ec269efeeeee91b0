#pragma once

#include <map>
#include <string>
#include <vector>

#include "samples/watch/chart.h"
#include "samples/watch/records.h"

namespace samples {

/// The curves of a training, gathered from its records.
class Curves {
 public:
  void add(const Record& record);
  /// Loss, metrics with the tests' results, rate, loss scale, gradient norm and skipped steps; some may be empty.
  std::vector<ChartPanel> panels() const;
  /// What is trained: "train_cifar10, mixed".
  const std::string& title() const { return title_; }
  /// Where it stands: "llvmpipe, step 300 of 600".
  std::string subtitle() const;

 private:
  void add_step(const Record& record);
  void add_evaluation(const Record& record);

  std::string title_;
  std::string device_;
  std::int64_t step_ = 0;
  std::int64_t steps_ = 0;
  std::map<std::string, std::vector<Point>> steps_by_key_;    ///< of steps: "loss", "metrics/accuracy"
  std::map<std::string, std::vector<Point>> scores_by_name_;  ///< of tests
};

}  // namespace samples
