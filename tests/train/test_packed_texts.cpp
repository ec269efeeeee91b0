// Texts one after another in a row of tokens train a BERT as texts of their own, padded, do.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/device.h"
#include "models/bert.h"
#include "train/parity.h"
#include "train/text_training.h"

namespace halfstep {
namespace {

constexpr std::int64_t longest = 20;
constexpr std::int64_t row = 56;  ///< of packed texts; four tokens are left
constexpr std::int64_t places = 6;
constexpr std::uint32_t vocabulary = 30;
constexpr std::uint32_t classes = 3;
const std::vector<std::uint32_t> text_lengths{7, 20, 1, 15, 9};

const models::BertOptions options{
    .layers = 2, .heads = 2, .width = 16, .hidden = 20, .positions = longest, .vocabulary = vocabulary, .dropout = 0};

using Numbers = std::vector<std::uint32_t>;

std::uint32_t token(std::size_t text, std::uint32_t i) {
  return testing::drawn("packed token", static_cast<std::int64_t>(text) * longest + i, vocabulary);
}

Numbers labels_of(std::uint32_t turn) {
  Numbers labels;
  for (std::size_t text = 0; text < text_lengths.size(); ++text) {
    labels.push_back(testing::drawn("packed label", static_cast<std::int64_t>(text) + turn, classes));
  }
  return labels;
}

Trainer trainer_of(const Graph& graph, Tensor loss, const Precision& precision) {
  return Trainer::compile(
      testing::device(), graph,
      {.loss = loss, .optimizer = AdamW{.rate = 0.003F, .epsilon = 1e-3F}, .precision = precision, .seed = 5});
}

/// A text in each row, up to the longest.
struct Padded {
  explicit Padded(const Precision& precision) {
    Graph graph;
    const auto count = static_cast<std::int64_t>(text_lengths.size());
    const models::BertInputs inputs{.tokens = graph.input("tokens", {count, longest}, DType::u32),
                                    .lengths = graph.input("lengths", {count}, DType::u32)};
    const Tensor labels = graph.input("labels", {count}, DType::u32);
    const Tensor loss = cross_entropy(models::bert_classifier(graph.root(), inputs, classes, options), labels);
    trainer = trainer_of(graph, loss, precision);
    for (std::size_t text = 0; text < text_lengths.size(); ++text) {
      for (std::uint32_t i = 0; i < longest; ++i) tokens.push_back(i < text_lengths[text] ? token(text, i) : 0);
    }
  }

  void step(std::uint32_t turn) {
    const Numbers labels = labels_of(turn);
    trainer->step({{"tokens", std::span<const std::uint32_t>(tokens)},
                   {"lengths", std::span<const std::uint32_t>(text_lengths)},
                   {"labels", std::span<const std::uint32_t>(labels)}});
  }

  std::optional<Trainer> trainer;
  Numbers tokens;
};

/// All texts in one row. The place after theirs is for none: its label does not count.
struct Packed {
  explicit Packed(const Precision& precision) {
    Graph graph;
    const auto input = [&](const char* name, Shape shape) { return graph.input(name, std::move(shape), DType::u32); };
    const models::BertPacking packing{.segments = input("segments", {1, row}),
                                      .positions = input("positions", {1, row}),
                                      .firsts = input("firsts", {places})};
    const models::BertInputs inputs{.tokens = input("tokens", {1, row}), .packing = packing};
    const Tensor labels = input("labels", {places});
    const Tensor loss = cross_entropy(models::bert_classifier(graph.root(), inputs, classes, options), labels);
    trainer = trainer_of(graph, loss, precision);
    for (std::size_t text = 0; text < text_lengths.size(); ++text) {
      firsts.push_back(static_cast<std::uint32_t>(tokens.size()));
      for (std::uint32_t i = 0; i < text_lengths[text]; ++i) add(token(text, i), text, i);
    }
    firsts.push_back(0);
    for (std::uint32_t i = 0; static_cast<std::int64_t>(tokens.size()) < row; ++i) add(0, text_lengths.size(), i);
  }

  void add(std::uint32_t id, std::size_t text, std::uint32_t position) {
    tokens.push_back(id);
    segments.push_back(static_cast<std::uint32_t>(text));
    positions.push_back(position);
  }

  void step(std::uint32_t turn) {
    Numbers labels = labels_of(turn);
    labels.push_back(ignored_label);
    trainer->step({{"tokens", std::span<const std::uint32_t>(tokens)},
                   {"segments", std::span<const std::uint32_t>(segments)},
                   {"positions", std::span<const std::uint32_t>(positions)},
                   {"firsts", std::span<const std::uint32_t>(firsts)},
                   {"labels", std::span<const std::uint32_t>(labels)}});
  }

  std::optional<Trainer> trainer;
  Numbers tokens, segments, positions, firsts;
};

}  // namespace

TEST_CASE("BERT trains on packed texts as on padded ones") {
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    CAPTURE(precision.name);
    const double allowed = precision.name == Precision::float32().name ? 1e-4 : 2e-2;
    Padded padded(precision);
    Packed packed(precision);
    for (std::uint32_t turn = 0; turn < 6; ++turn) {
      padded.step(turn);
      packed.step(turn);
      padded.trainer->finish();  // a report is of the newest step that has finished
      packed.trainer->finish();
      CHECK(packed.trainer->report().loss == doctest::Approx(padded.trainer->report().loss).epsilon(allowed));
    }
    const std::vector<float> want = testing::text_weights(*padded.trainer);
    const std::vector<float> got = testing::text_weights(*packed.trainer);
    double difference = 0;
    double size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += std::pow(static_cast<double>(got[i] - want[i]), 2);
      size += std::pow(static_cast<double>(want[i]), 2);
    }
    CHECK(std::sqrt(difference / size) < allowed);
  }
}

}  // namespace halfstep
