#include "train/text_training.h"

#include <memory>
#include <utility>

#include "harness/device.h"
#include "models/bert.h"
#include "models/layers.h"
#include "train/parity.h"
#include "train/small_training.h"

namespace halfstep::testing {
namespace {

constexpr std::int64_t longest = longest_text;
constexpr std::uint32_t vocabulary = 30;
constexpr std::uint32_t classes = 3;

}  // namespace

std::uint32_t drawn(const char* name, std::int64_t i, std::uint32_t below) {
  return static_cast<std::uint32_t>(word(name, static_cast<std::uint64_t>(i)) % below);
}

Dataset texts(std::int64_t count) {
  std::vector<std::uint16_t> tokens;
  std::vector<std::uint8_t> lengths;
  std::vector<std::uint32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    lengths.push_back(static_cast<std::uint8_t>(1 + drawn("long", i, i % 5 == 0 ? 24 : 10)));
    labels.push_back(drawn("label", i, classes));
    for (std::int64_t t = 0; t < longest; ++t) {
      tokens.push_back(static_cast<std::uint16_t>(drawn("token", i * longest + t, vocabulary)));
    }
    tokens[static_cast<std::size_t>(i * longest)] = static_cast<std::uint16_t>(labels.back());  // to be learned
  }
  return Dataset::of("texts",
                     {Field::own("tokens", {longest}, std::move(tokens), vocabulary),
                      Field::own("lengths", {}, std::move(lengths)), Field::own("labels", {}, std::move(labels))});
}

std::vector<std::uint32_t> buckets_of(const Dataset& set) {
  std::vector<std::uint32_t> buckets;
  for (const std::byte length : set.fields[1].data) {
    buckets.push_back(length <= std::byte{7} ? 0U : (length <= std::byte{12} ? 1U : 2U));
  }
  return buckets;
}

TextClassifier::TextClassifier(std::int64_t length, float dropout, std::int64_t batch, std::int64_t width) {
  tokens = graph.input("tokens", {batch, length}, DType::u32);
  lengths = graph.input("lengths", {batch}, DType::u32);
  labels = graph.input("labels", {batch}, DType::u32);
  logits = models::bert_classifier(graph.root(), {.tokens = tokens, .lengths = lengths}, classes,
                                   {.layers = 2,
                                    .heads = 2,
                                    .width = width,
                                    .hidden = 20,
                                    .positions = 26,
                                    .vocabulary = vocabulary,
                                    .dropout = dropout});
  loss = cross_entropy(logits, labels);
  metrics = {{"accuracy", accuracy(logits, labels)}};
}

Feed TextClassifier::feed() const {
  return {.inputs = {{.input = tokens}, {.input = lengths}, {.input = labels}}};
}

Bucket TextClassifier::bucket(std::int64_t length) const {
  return {.length = length, .graph = &graph, .loss = loss, .metrics = metrics, .feed = feed()};
}

TrainerOptions text_options(const TextClassifier& model, const TextSettings& settings) {
  TrainerOptions options{.loss = model.loss, .metrics = model.metrics, .optimizer = settings.optimizer};
  options.accumulate = settings.accumulate;
  options.precision = settings.precision;
  options.seed = settings.seed;
  options.resident_limit = settings.resident_limit;
  return options;
}

Trainer text_trainer(const Dataset& set, const TextSettings& settings, const std::vector<std::int64_t>& shorter) {
  const TextClassifier model(longest, settings.dropout);
  std::vector<std::unique_ptr<TextClassifier>> others;
  TrainerOptions options = text_options(model, settings);
  options.feed = model.feed();
  options.training_set = &set;
  if (!shorter.empty()) options.buckets = Buckets{.longest = longest};
  for (const std::int64_t length : shorter) {
    others.push_back(std::make_unique<TextClassifier>(length, settings.dropout));
    options.buckets->shorter.push_back(others.back()->bucket(length));
  }
  if (settings.change) settings.change(options);
  return Trainer::compile(device(), model.graph, std::move(options));
}

std::vector<float> text_weights(Trainer& trainer) {
  const std::string names[] = {"bert/embeddings/word_embeddings/weight",
                               "bert/embeddings/position_embeddings/weight",
                               "bert/embeddings/LayerNorm/weight",
                               "bert/encoder/layer/0/attention/self/query/weight",
                               "bert/encoder/layer/0/output/dense/weight",
                               "bert/encoder/layer/1/attention/self/value/weight",
                               "bert/encoder/layer/1/output/LayerNorm/bias",
                               "bert/pooler/dense/weight",
                               "classifier/weight",
                               "classifier/bias"};
  return all_weights(trainer, names);
}

PointModel::PointModel(std::int64_t count, bool biased)
    : points(graph.input("points", {text_batch, count, 3})), labels(graph.input("labels", {text_batch}, DType::u32)) {
  const Tensor logits = models::dense(graph.root() / "dense", sum(points, {1}), 4);
  const Tensor offset = graph.root().parameter("offset", {4}, constant(0));
  loss = cross_entropy(biased ? add(logits, offset) : logits, labels);
}

Feed PointModel::feed() const {
  return {.inputs = {{.input = points, .stddev = {1, 2, 4}}, {.input = labels}}};
}

}  // namespace halfstep::testing
