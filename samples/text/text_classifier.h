#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/bert.h"

namespace samples {

/// A BERT that classifies texts, in a graph for batches of one length. Two classes take one logit: whether a text is of
/// the second.
struct TextClassifier {
  TextClassifier(std::int64_t batch, std::int64_t length, std::uint32_t classes,
                 const halfstep::models::BertOptions& size);

  /// What feeds it from a text_set().
  halfstep::Feed feed() const;
  /// For a trainer of several lengths.
  halfstep::Bucket bucket() const;

  std::int64_t length;
  halfstep::Graph graph;
  halfstep::Tensor tokens, lengths, labels, logits, loss, accuracy;
};

/// The same model for several lengths, the shortest first.
using TextClassifiers = std::vector<std::unique_ptr<TextClassifier>>;

/// Classifies texts with the weights of a trainer, each in the graph of its length.
class TextPredictor {
 public:
  /// `models` must outlive this.
  TextPredictor(const halfstep::Trainer& trainer, const TextClassifiers& models);
  /// The class of each text of a text_set(). Waits for the results. None of them once `stop` returns true, which is
  /// asked before each batch.
  std::vector<std::uint32_t> classify(const halfstep::Dataset& set, const std::function<bool()>& stop = {});

 private:
  const TextClassifiers& models_;
  std::vector<halfstep::Predictor> predictors_;
};

/// How well texts were classified.
struct Score {
  double accuracy = 0;
  double macro_f1 = 0;  ///< the mean over classes of 2 TP / (2 TP + FP + FN)
};
Score score_of(const std::vector<std::uint32_t>& guesses, const std::vector<std::uint32_t>& labels,
               std::size_t classes);

}  // namespace samples
