#include "samples/common/classifier.h"

#include <algorithm>
#include <cmath>

#include "models/by_name.h"

using namespace halfstep;

namespace samples {

Classifier::Classifier(const ModelDescription& model, std::int64_t batch)
    : model_(model), shape_{batch, model.input[0], model.input[1], model.input[2]} {
  for (std::size_t c = 0; c < static_cast<std::size_t>(shape_.back()); ++c) {
    const float stddev = model_.stddev[std::min(c, model_.stddev.size() - 1)];
    factor_.push_back(1 / (255 * stddev));
    offset_.push_back(-model_.mean[std::min(c, model_.mean.size() - 1)] / stddev);
  }
}

Classifier::Classifier(const Device& device, const ModelDescription& model, const std::filesystem::path& weights,
                       std::int64_t batch)
    : Classifier(model, batch) {
  Graph graph;
  predictor_.emplace(Predictor::compile(device, graph, logits(graph)));
  predictor_->load_weights(weights);
}

Classifier::Classifier(const Trainer& trainer, Weights weights, const ModelDescription& model, std::int64_t batch)
    : Classifier(model, batch) {
  Graph graph;
  predictor_.emplace(Predictor::compile(trainer, graph, logits(graph), {}, weights));
}

Tensor Classifier::logits(Graph& graph) const {
  const std::int64_t channels = shape_.back();
  const Tensor bytes = graph.input("bytes", shape_);
  const Tensor images = add(mul(bytes, graph.input("factor", {channels})), graph.input("offset", {channels}));
  return models::image_model(graph.root(), images, model_.name, static_cast<std::int64_t>(model_.classes.size()));
}

std::vector<std::vector<Guess>> Classifier::guesses(const Dataset& images) {
  std::vector<std::vector<Guess>> all;
  const auto size = static_cast<std::size_t>(images.sample_bytes());
  for (std::int64_t first = 0; first < images.count; first += shape_[0]) {
    const std::int64_t count = std::min(shape_[0], images.count - first);
    std::vector<float> values(static_cast<std::size_t>(elements(shape_)));
    std::copy_n(images.samples.begin() + first * static_cast<std::int64_t>(size),
                count * static_cast<std::int64_t>(size), values.begin());
    const std::vector<float> logits = predictor_->run({{"bytes", std::span<const float>(values)},
                                                       {"factor", std::span<const float>(factor_)},
                                                       {"offset", std::span<const float>(offset_)}});
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t classes = model_.classes.size();
      all.push_back(ranked(std::span(logits).subspan(static_cast<std::size_t>(i) * classes, classes)));
    }
  }
  return all;
}

std::vector<Guess> Classifier::ranked(std::span<const float> logits) const {
  const auto top = static_cast<double>(*std::ranges::max_element(logits));
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - top);
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    guesses.push_back({model_.classes[i], std::exp(static_cast<double>(logits[i]) - top) / total});
  }
  std::ranges::stable_sort(guesses, std::ranges::greater{}, &Guess::probability);
  return guesses;
}

}  // namespace samples
