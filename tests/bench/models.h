#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <map>
#include <string>

namespace bench {

/// What a step of a model trains, for measurements of whole steps.
struct Training {
  halfstep::Tensor loss;
  std::map<std::string, halfstep::Tensor> metrics;
  halfstep::Feed feed;
};

struct Model {
  /// Adds the model with a batch of so many samples; `layers` is the number of dense layers, for the mlp only.
  Training (*build)(halfstep::Graph& graph, std::int64_t batch, std::int64_t layers) = nullptr;
  /// A set of random samples for it.
  halfstep::Dataset (*set)(std::int64_t count) = nullptr;
};

/// The models by their names on the command line: classifiers of images and of texts of 128 tokens, and a GPT.
const std::map<std::string, Model>& models();

/// The same, larger models and networks of bin/image_fit (of another width where the name says so) that are only
/// compiled, and single operators of large sizes with their gradients: a product of 4096 cubed, a 3x3 convolution of
/// ResNet-50, and operators that only move data. They have no set of samples.
const std::map<std::string, Model>& compiled_models();

}  // namespace bench
