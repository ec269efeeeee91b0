#pragma once

#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
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
  std::function<Training(halfstep::Graph& graph, std::int64_t batch, std::int64_t layers)> build;
  /// A set of random samples for it; none if it is only compiled.
  std::function<halfstep::Dataset(std::int64_t count)> set;
};

/// A model by its name on the command line. Trained are classifiers of images, among them the ResNets on images of
/// 32x32, of any depth, and of texts of 128 tokens, and a GPT. Only compiled are larger ones, networks of bin/image_fit
/// (of another width where the name says so), and single operators of large sizes with their gradients: a product of
/// 4096 cubed, a 3x3 convolution of ResNet-50, and operators that only move data. Throws Error for any other name.
Model model_of(const std::string& name);

/// Checks an option for the name of a model: one that can be trained, or any.
CLI::Validator trained_model();
CLI::Validator any_model();

}  // namespace bench
