#include "samples/text/text_classifier.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "samples/text/text_data.h"

namespace samples {

using halfstep::DType;
using halfstep::Tensor;

namespace {

/// The first `count` integers of a field's samples.
std::vector<std::uint32_t> gather(const halfstep::Field& field, std::span<const std::uint32_t> indices,
                                  std::int64_t count) {
  const auto* const from = reinterpret_cast<const std::uint32_t*>(field.data.data());  // of a vector of these
  std::vector<std::uint32_t> values;
  for (const std::uint32_t index : indices) {
    const auto* const sample = from + index * field.step();
    values.insert(values.end(), sample, sample + count);
  }
  return values;
}

std::uint32_t guess(std::span<const float> logits) {
  if (logits.size() == 1) return logits.front() > 0 ? 1 : 0;
  return static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace

TextClassifier::TextClassifier(std::int64_t batch, std::int64_t of_length, std::uint32_t classes,
                               const halfstep::models::BertOptions& size)
    : length(of_length),
      tokens(graph.input("tokens", {batch, length}, DType::u32)),
      lengths(graph.input("lengths", {batch}, DType::u32)) {
  const halfstep::models::BertInputs inputs{.tokens = tokens, .lengths = lengths};
  if (classes == 2) {
    logits = bert_classifier(graph.root(), inputs, 1, size);
    labels = graph.input("labels", {batch, 1});
    loss = binary_cross_entropy(logits, labels);
    accuracy = mean(equal(greater(cast(logits, DType::f32), scale(labels, 0)), labels));
  } else {
    logits = bert_classifier(graph.root(), inputs, classes, size);
    labels = graph.input("labels", {batch}, DType::u32);
    loss = cross_entropy(logits, labels);
    accuracy = halfstep::accuracy(logits, labels);
  }
}

halfstep::Feed TextClassifier::feed() const {
  return {.inputs = {{.input = tokens}, {.input = lengths}, {.input = labels}}};
}

halfstep::Bucket TextClassifier::bucket() const {
  return {.length = length, .graph = &graph, .loss = loss, .metrics = {{"accuracy", accuracy}}, .feed = feed()};
}

TextPredictor::TextPredictor(const halfstep::Trainer& trainer, const TextClassifiers& models) : models_(models) {
  for (const auto& model : models) {
    predictors_.push_back(halfstep::Predictor::compile(trainer, model->graph, model->logits));
  }
}

std::vector<std::uint32_t> TextPredictor::classify(const halfstep::Dataset& set, const std::function<bool()>& stop) {
  std::vector<std::int64_t> lengths;
  for (const auto& model : models_) lengths.push_back(model->length);
  const std::int64_t batch = models_.front()->tokens.dim(0);
  halfstep::BatchSampler sampler = halfstep::BatchSampler::evaluation(buckets_of(set, lengths), batch);
  std::vector<std::uint32_t> guesses(static_cast<std::size_t>(set.count));
  for (std::int64_t step = 0; step < sampler.batches_per_epoch(); ++step) {
    if (stop && stop()) return {};
    const std::uint32_t bucket = sampler.bucket(step);
    const std::span<const std::uint32_t> texts = sampler.batch(step);
    const std::vector<std::uint32_t> tokens = gather(field_of(set, "tokens"), texts, lengths[bucket]);
    const std::vector<std::uint32_t> sizes = gather(field_of(set, "lengths"), texts, 1);
    const std::vector<float> logits =
        predictors_[bucket].run({{"tokens", std::span(tokens)}, {"lengths", std::span(sizes)}});
    const std::size_t row = logits.size() / texts.size();
    for (std::size_t i = 0; i < texts.size(); ++i) guesses[texts[i]] = guess(std::span(logits).subspan(i * row, row));
  }
  return guesses;
}

Score score_of(const std::vector<std::uint32_t>& guesses, const std::vector<std::uint32_t>& labels,
               std::size_t classes) {
  std::vector<double> right(classes);
  std::vector<double> guessed(classes);
  std::vector<double> actual(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    ++guessed[guesses[i]];
    ++actual[labels[i]];
    if (guesses[i] == labels[i]) ++right[labels[i]];
  }
  Score score;
  for (std::size_t c = 0; c < classes; ++c) {
    score.accuracy += right[c] / static_cast<double>(labels.size());
    if (guessed[c] + actual[c] > 0)
      score.macro_f1 += 2 * right[c] / (guessed[c] + actual[c]) / static_cast<double>(classes);
  }
  return score;
}

}  // namespace samples
