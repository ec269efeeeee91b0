#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

/// Trainings at several lengths, small enough for tests.
namespace halfstep::testing {

inline constexpr std::int64_t longest_text = 24;
inline constexpr std::int64_t text_batch = 4;
/// Of the buckets before the longest.
inline const std::vector<std::int64_t> shorter_lengths{7, 12};

/// The `i`-th of the numbers below `below` that `name` stands for.
std::uint32_t drawn(const char* name, std::int64_t i, std::uint32_t below);

/// Texts of 1 to 24 tokens, most of them short, with a label of three. What lies beyond a text's length is arbitrary.
Dataset texts(std::int64_t count);
/// The bucket of each of these texts.
std::vector<std::uint32_t> buckets_of(const Dataset& set);

/// A BERT for texts of one length.
struct TextClassifier {
  TextClassifier(std::int64_t length, float dropout, std::int64_t batch = text_batch, std::int64_t width = 16);
  Feed feed() const;
  Bucket bucket(std::int64_t length) const;

  Graph graph;
  Tensor tokens, lengths, labels, logits, loss;
  std::map<std::string, Tensor> metrics{};
};

struct TextSettings {
  float dropout = 0;
  Precision precision = Precision::float32();
  Optimizer optimizer = Sgd{.rate = 0.05F, .momentum = 0.9F};
  std::int64_t accumulate = 1;
  std::uint64_t resident_limit = 0;
  std::uint64_t seed = 3;
  std::function<void(TrainerOptions&)> change{};  ///< applied to text_trainer's options last
};

/// Options without a feed.
TrainerOptions text_options(const TextClassifier& model, const TextSettings& settings);
/// A trainer in buckets of the lengths `shorter` and the longest; if there are none, one that pads every text.
Trainer text_trainer(const Dataset& set, const TextSettings& settings,
                     const std::vector<std::int64_t>& shorter = shorter_lengths);
/// Parameters of every kind of text_trainer's.
std::vector<float> text_weights(Trainer& trainer);

/// Classifies the sum of points {n, count, 3}, which are zero beyond their number.
struct PointModel {
  explicit PointModel(std::int64_t count, bool biased = true);
  Feed feed() const;

  Graph graph;
  Tensor points, labels, loss;
};

}  // namespace halfstep::testing
