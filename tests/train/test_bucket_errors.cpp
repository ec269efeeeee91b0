// Buckets that cannot be trained.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <functional>
#include <utility>

#include "harness/device.h"
#include "train/text_training.h"

namespace halfstep {
namespace {

void check_refused(const Dataset& set, const char* text, std::function<void(TrainerOptions&)> change,
                   const std::vector<std::int64_t>& in = testing::shorter_lengths) {
  CHECK_THROWS_WITH_AS(testing::text_trainer(set, {.change = std::move(change)}, in), doctest::Contains(text), Error);
}

}  // namespace

TEST_CASE("buckets that cannot be are refused by name") {
  const Dataset set = testing::texts(20);
  const auto same = [](TrainerOptions&) {};
  check_refused(set, "[buckets] expected lengths that increase and are below 24, got 7 after 12", same, {12, 7});
  check_refused(set, "got 7 after 7", same, {7, 7});
  check_refused(set, "got 24 after 7", same, {7, 24});
  check_refused(set, "got 0 after 0", [](TrainerOptions& made) { made.buckets->shorter.front().length = 0; });
  check_refused(set, "expected a graph of length 7, got none",
                [](TrainerOptions& made) { made.buckets->shorter.front().graph = nullptr; });
  check_refused(set, "expected a positive longest length, got 0",
                [](TrainerOptions& made) { made.buckets = Buckets{}; });
  check_refused(set, "expected the trainer's metrics for length 7, got others",
                [](TrainerOptions& made) { made.buckets->shorter.front().metrics.clear(); });
  check_refused(set, "expected a feed and a training set, got none",
                [](TrainerOptions& made) { made.training_set = nullptr; });
  check_refused(set, "expected integers {} 'words' in 'texts', got none",
                [](TrainerOptions& made) { made.buckets->field = "words"; });
  check_refused(set, "expected integers {} 'tokens' in 'texts', got u16 {24}",
                [](TrainerOptions& made) { made.buckets->field = "tokens"; });
  check_refused(set, "expected samples of {7} for 'tokens', got {24}",
                [](TrainerOptions& made) { made.buckets->shorter.front().length = 6; });
  check_refused(set, "expected the trainer's feed for length 7, got another", [](TrainerOptions& made) {
    std::swap(made.buckets->shorter.front().feed.inputs[0], made.buckets->shorter.front().feed.inputs[1]);
  });
  const testing::TextClassifier wide(7, 0, testing::text_batch, 20);
  check_refused(set, "got 'bert/embeddings/word_embeddings/weight' f32 {30, 20} in the place of",
                [&](TrainerOptions& made) { made.buckets->shorter.front() = wide.bucket(7); });
  const testing::TextClassifier large(7, 0, testing::text_batch + 1);
  check_refused(set, "expected the trainer's batch of 4 in the graph of length 7, got 5",
                [&](TrainerOptions& made) { made.buckets->shorter.front() = large.bucket(7); });
  check_refused(set, "expected samples of lengths up to 8 in 'texts', got",
                [](TrainerOptions& made) { made.buckets->longest = 8; }, {7});
  Source source{.name = "s", .count = 9, .fields = {{.name = "tokens"}}, .fill = [](const SourceBatch&) {}};
  check_refused(set, "expected a feed and a training set, got a source", [&](TrainerOptions& made) {
    made.training_set = nullptr;
    made.source = &source;
  });
}

TEST_CASE("a bucket that trains fewer parameters than the trainer is refused") {
  const Dataset set = Dataset::of("points", {Field::own("points", {9, 3}, std::vector<float>(4 * 27)),
                                             Field::own("lengths", {}, std::vector<std::uint32_t>(4)),
                                             Field::own("labels", {}, std::vector<std::uint32_t>(4))});
  const testing::PointModel model(9);
  const testing::PointModel few(4, false);
  TrainerOptions options{.loss = model.loss, .feed = model.feed(), .training_set = &set};
  options.buckets =
      Buckets{.longest = 9, .shorter = {{.length = 4, .graph = &few.graph, .loss = few.loss, .feed = few.feed()}}};
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), model.graph, options),
                       doctest::Contains("'offset' f16 {4}, not trained, in the place of 'offset' f16 {4}"), Error);
}

TEST_CASE("a set with a text beyond the longest bucket is refused where it is evaluated") {
  Trainer in_buckets = [] {
    static const Dataset set = testing::texts(20);
    return testing::text_trainer(set, {});
  }();
  Dataset set = testing::texts(6);
  set.fields[1] = Field::own("lengths", {}, std::vector<std::uint8_t>{1, 2, 3, 25, 4, 5});
  CHECK_THROWS_WITH_AS(in_buckets.evaluate(set),
                       doctest::Contains("expected samples of lengths up to 24 in 'texts', got 25 for sample 3"),
                       Error);
  set.fields.erase(set.fields.begin() + 1);
  CHECK_THROWS_AS(in_buckets.evaluate(set), Error);
}

}  // namespace halfstep
