#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samples/common/models.h"

namespace samples {

/// A class and its predicted probability.
struct Guess {
  std::string name;
  double probability = 0;
};

/// A model with its weights that classifies images of bytes, a batch at a time.
class Classifier {
 public:
  /// With the weights of a file.
  Classifier(const halfstep::Device& device, const ModelDescription& model, const std::filesystem::path& weights,
             std::int64_t batch);
  /// With the weights that `trainer`, which trains that model, has at the time.
  Classifier(const halfstep::Trainer& trainer, halfstep::Weights weights, const ModelDescription& model,
             std::int64_t batch);

  /// All classes of every image, the most likely first.
  std::vector<std::vector<Guess>> guesses(const halfstep::Dataset& images);

 private:
  Classifier(const ModelDescription& model, std::int64_t batch);
  halfstep::Tensor logits(halfstep::Graph& graph) const;
  std::vector<Guess> ranked(std::span<const float> logits) const;

  ModelDescription model_;
  halfstep::Shape shape_;
  std::vector<float> factor_;
  std::vector<float> offset_;
  std::optional<halfstep::Predictor> predictor_;
};

}  // namespace samples
