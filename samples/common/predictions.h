#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "samples/common/classifier.h"
#include "samples/common/data.h"

namespace samples {

/// Pictures of what a model predicts, while it is trained, for a few images of the test, each time the same.
class Predictions {
 public:
  /// Makes `folder`, unless it exists. `model` is what `trainer` trains, without the input's shape; `weights` are those
  /// that the test takes.
  Predictions(const halfstep::Trainer& trainer, halfstep::Weights weights, ModelDescription model, const Data& data,
              std::filesystem::path folder);

  /// A picture as a file.
  struct Sheet {
    std::filesystem::path file;
    int width = 0;
    int height = 0;
  };
  /// Draws the predictions of the present weights after `step` steps. Waits for them.
  Sheet draw(std::uint64_t step);

 private:
  std::filesystem::path folder_;
  halfstep::Dataset images_;
  std::vector<std::string> names_;  ///< of their classes
  Classifier classifier_;
};

}  // namespace samples
