#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "samples/watch/curves.h"

namespace samples {

/// A picture of a training's curves, written anew after each test, every half a minute and at the end.
class Plot : public Sink {
 public:
  /// `before` are the records of the run that goes on.
  Plot(std::filesystem::path file, const std::vector<Record>& before);
  void write(const Record& record) override;

 private:
  std::filesystem::path file_;
  Curves curves_;
  std::chrono::steady_clock::time_point drawn_ = std::chrono::steady_clock::now();
};

}  // namespace samples
