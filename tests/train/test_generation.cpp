// Generation with caches of keys and values, against the model that sees the whole text.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "graph/ir.h"
#include "harness/device.h"
#include "harness/values.h"
#include "host/temporary_folder.h"
#include "models/gpt_generator.h"

namespace halfstep {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr models::GptOptions small{
    .layers = 2, .heads = 2, .width = 20, .positions = 12, .vocabulary = 11, .dropout = 0.1F};
constexpr std::int64_t batch = 3;

Words text_of(std::int64_t length, std::uint64_t seed) {
  Words words;
  for (const double word : testing::whole({length}, seed, 11).values) words.push_back(static_cast<std::uint32_t>(word));
  return words;
}

/// A trainer of a GPT, with weights that are far from the initial values.
Trainer small_trainer(const Precision& precision) {
  Graph graph;
  const Tensor tokens = graph.input("tokens", {2, 4}, DType::u32);
  const Tensor targets = graph.input("targets", {8}, DType::u32);
  const Tensor logits = models::gpt(graph.root() / "transformer", tokens, small);
  TrainerOptions options{.loss = cross_entropy(reshape(logits, {8, small.vocabulary}), targets)};
  options.precision = precision;
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  std::uint64_t seed = 1;
  for (const graph::ValueId id : graph.ir().of(graph::Origin::parameter)) {
    const graph::Value& parameter = graph.ir().values[id];
    const bool matrix = parameter.type.shape.size() == 2;
    const reference::Array values =
        testing::uniform(parameter.type.shape, ++seed, matrix ? -0.4 : 0.2, matrix ? 0.4 : 1);
    trainer.set_parameter(parameter.name, std::vector<float>(values.values.begin(), values.values.end()));
  }
  return trainer;
}

Predictor prompt_predictor(const Trainer& trainer, std::int64_t length) {
  Graph graph;
  const models::GptPrompt prompt{.tokens = graph.input("tokens", {batch, length}, DType::u32),
                                 .first = graph.input("first", {batch}, DType::u32),
                                 .last = graph.input("last", {batch}, DType::u32)};
  const Tensor logits = models::gpt_prompt(graph.root() / "transformer", prompt, small);
  return Predictor::compile(trainer, graph, logits);
}

Predictor next_predictor(const Predictor& prompt, const models::GptOptions& options = small) {
  Graph graph;
  const models::GptNext next{.tokens = graph.input("tokens", {batch}, DType::u32),
                             .positions = graph.input("positions", {batch}, DType::u32),
                             .lengths = graph.input("lengths", {batch}, DType::u32)};
  const Tensor logits = models::gpt_next(graph.root() / "transformer", next, options);
  return Predictor::compile(prompt, graph, logits);
}

std::vector<float> run(Predictor& predictor, const std::map<std::string, Words>& inputs) {
  std::map<std::string, Values> values;
  for (const auto& [name, words] : inputs) values.emplace(name, std::span<const std::uint32_t>(words));
  return predictor.run(values);
}

/// The logits of every token of texts of full length, without caches: {batch, positions, vocabulary}.
std::vector<float> whole_logits(const Trainer& trainer, const Words& tokens) {
  Graph graph;
  const Tensor input = graph.input("tokens", {batch, small.positions}, DType::u32);
  const Tensor logits = models::gpt(graph.root() / "transformer", input, small);
  Predictor predictor = Predictor::compile(trainer, graph, logits);
  return run(predictor, {{"tokens", tokens}});
}

/// The largest difference between one text's logits and those after `length` of its tokens without caches.
double difference(const std::vector<float>& got, const std::vector<float>& whole, std::size_t text,
                  std::size_t length) {
  const auto row = static_cast<std::size_t>(small.vocabulary);
  const std::size_t first = (text * static_cast<std::size_t>(small.positions) + length - 1) * row;
  double worst = 0;
  for (std::size_t i = 0; i < row; ++i) {
    const double off = std::abs(static_cast<double>(got[text * row + i]) - static_cast<double>(whole[first + i]));
    worst = std::isnan(off) ? off : std::max(worst, off);
    if (std::isnan(worst)) return worst;
  }
  return worst;
}

/// Texts of other lengths in one batch, token by token from the caches.
void check_cached_logits(const Precision& precision, double tolerance) {
  const Trainer trainer = small_trainer(precision);
  constexpr std::size_t positions = 12;
  const Words tokens = text_of(batch * small.positions, 5);
  const std::vector<float> whole = whole_logits(trainer, tokens);
  double largest = 0;
  for (const float logit : whole) largest = std::max(largest, std::abs(static_cast<double>(logit)));
  CHECK(largest > 0.5);
  constexpr std::size_t longest = 7;
  std::vector<std::size_t> lengths{1, 4, longest};
  Predictor prompt = prompt_predictor(trainer, longest);
  Predictor next = next_predictor(prompt);
  Words padded(batch * longest, 3);
  Words last;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(i * positions), lengths[i],
                padded.begin() + static_cast<std::ptrdiff_t>(i * longest));
    last.push_back(static_cast<std::uint32_t>(i * longest + lengths[i] - 1));
  }
  std::vector<float> logits = run(prompt, {{"tokens", padded}, {"first", Words(batch)}, {"last", last}});
  for (int step = 0; step < 6; ++step) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      CHECK(difference(logits, whole, i, lengths[i]) <= tolerance * largest);
    }
    Words own, place, seen;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == positions) --lengths[i];  // the last token once more
      own.push_back(tokens[i * positions + lengths[i]]);
      place.push_back(static_cast<std::uint32_t>(lengths[i]));
      seen.push_back(static_cast<std::uint32_t>(++lengths[i]));
    }
    logits = run(next, {{"tokens", own}, {"positions", place}, {"lengths", seen}});
  }
}

}  // namespace

TEST_CASE("logits with caches are those of the whole text") {
  check_cached_logits(Precision::float32(), 1e-5);
}

TEST_CASE("caches have the type that attention computes in") {
  check_cached_logits(Precision::mixed(), 2e-2);
  check_cached_logits(Precision::autocast(), 2e-2);
}

TEST_CASE("a prompt leaves the caches of the texts that it is not for as they are") {
  const Trainer trainer = small_trainer(Precision::float32());
  Predictor prompt = prompt_predictor(trainer, 4);
  Predictor next = next_predictor(prompt);
  const Words last{3, 7, 11};
  run(prompt, {{"tokens", text_of(12, 1)}, {"first", {0, 0, 0}}, {"last", last}});
  const std::map<std::string, Words> more{{"tokens", {1, 2, 3}}, {"positions", {4, 4, 4}}, {"lengths", {5, 5, 5}}};
  const std::vector<float> before = run(next, more);
  run(prompt, {{"tokens", text_of(12, 2)}, {"first", {12, 0, 12}}, {"last", last}});
  const std::vector<float> after = run(next, more);
  const auto row = static_cast<std::ptrdiff_t>(small.vocabulary);
  CHECK(std::equal(before.begin(), before.begin() + row, after.begin()));
  CHECK_FALSE(std::equal(before.begin() + row, before.begin() + 2 * row, after.begin() + row));
  CHECK(std::equal(before.begin() + 2 * row, before.end(), after.begin() + 2 * row));
}

TEST_CASE("what follows a shorter prompt changes nothing, be it a token or an ignored one") {
  const Trainer trainer = small_trainer(Precision::float32());
  Predictor prompt = prompt_predictor(trainer, 4);
  Predictor next = next_predictor(prompt);
  std::vector<std::vector<float>> all;
  for (const std::uint32_t padding : {0U, 5U, ignored_label}) {
    const Words tokens{1, 2, padding, padding, 3, 4, 5, 6, 7, padding, padding, padding};
    all.push_back(run(prompt, {{"tokens", tokens}, {"first", {0, 0, 0}}, {"last", {1, 7, 8}}}));
    all.push_back(run(next, {{"tokens", {1, 2, 3}}, {"positions", {2, 4, 1}}, {"lengths", {3, 5, 2}}}));
  }
  CHECK(std::ranges::all_of(all[0], [](float logit) { return std::isfinite(logit); }));
  for (std::size_t i = 2; i < all.size(); ++i) CHECK(all[i] == all[i % 2]);
}

TEST_CASE("each text of a batch is as it is alone, beyond the model's positions too") {
  Trainer trainer = small_trainer(Precision::float32());
  const std::vector<models::Prompt> prompts{
      {.tokens = text_of(1, 1)}, {.tokens = text_of(5, 2)}, {.tokens = text_of(20, 3)}};
  const models::GenerationOptions how{.sampling = {.top_k = 8, .seed = 4}, .tokens = 30};
  models::GptGenerator all(trainer, {.model = small, .batch = 3, .prompt = 20});
  const std::vector<Words> texts = all.generate(prompts, how);
  CHECK(all.generate(prompts, how) == texts);
  models::GptGenerator one(trainer, {.model = small, .batch = 1, .prompt = 20});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    CHECK(texts[i].size() == 30);
    CHECK(one.generate({prompts[i]}, how).front() == texts[i]);
  }
  CHECK(one.generate({{.tokens = prompts[0].tokens, .sequence = 1}}, how).front() != texts[0]);

  // The same from a file.
  const TemporaryFolder folder;
  trainer.save_weights(folder.path() / "model.safetensors");
  models::GptGenerator own(testing::device(), {.model = small, .batch = 3, .prompt = 20});
  own.load_weights(folder.path() / "model.safetensors");
  CHECK(own.generate(prompts, how) == texts);
}

TEST_CASE("a text ends with its last token, and only known tokens are drawn") {
  const Trainer trainer = small_trainer(Precision::float32());
  models::GptGenerator generator(trainer, {.model = small, .batch = 2});
  const std::vector<models::Prompt> prompts{{.tokens = {1}}, {.tokens = {2}}};
  models::GenerationOptions how{.sampling = {.seed = 9}, .tokens = 40};
  std::vector<Words> told(2);
  how.drawn = [&](std::size_t prompt, std::uint32_t token) { told[prompt].push_back(token); };
  const std::vector<Words> free = generator.generate(prompts, how);
  CHECK(told == free);
  how.end = free[0][3];
  const Words ended = generator.generate(prompts, how).front();
  const auto end = std::ranges::find(free[0], *how.end);
  CHECK(ended == Words(free[0].begin(), end + 1));
  how.end.reset();
  how.vocabulary = 3;
  for (const Words& text : generator.generate(prompts, how)) CHECK(std::ranges::max(text) < 3);
  how.stop = [] { return true; };
  CHECK(generator.generate(prompts, how) == std::vector<Words>(2));
}

TEST_CASE("generation names prompts that it cannot go on from") {
  const Trainer trainer = small_trainer(Precision::float32());
  models::GptGenerator generator(trainer, {.model = small});
  const auto refuses = [&](const std::vector<models::Prompt>& prompts, const char* message) {
    CHECK_THROWS_WITH_AS(generator.generate(prompts, {}), message, Error);
  };
  refuses({}, "[generate] expected 1 to 1 prompts, got 0");
  refuses({{.tokens = {1}}, {.tokens = {1}}}, "[generate] expected 1 to 1 prompts, got 2");
  refuses({{}}, "[generate] expected a prompt of one token or more, got none");
  refuses({{.tokens = {1, 11}}}, "[generate] expected tokens below the vocabulary's 11, got 11");
}

TEST_CASE("caches are for predictors, and change in place") {
  Graph graph;
  const Tensor rows = graph.input("rows", {1, 1, 1, 4});
  const Tensor first = graph.input("first", {1}, DType::u32);
  const Tensor cache = graph.root().cache("cache", {1, 1, 3, 4});
  SUBCASE("training has none") {
    const Tensor loss = mean(mul(cache, graph.root().parameter("w", {4}, constant(1))));
    CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), graph, {.loss = loss}),
                         doctest::Contains("[trainer] expected a graph without caches, got 'cache'"), Error);
  }
  SUBCASE("another operator than store_rows") {
    const Tensor next = scale(cache, 2);
    update(cache, next);
    CHECK_THROWS_WITH_AS(Predictor::compile(testing::device(), graph, next),
                         doctest::Contains("expected the next value of 'cache' from store_rows"), Error);
  }
  SUBCASE("a second reader") {
    const Tensor next = store_rows(cache, rows, first);
    update(cache, next);
    CHECK_THROWS_WITH_AS(Predictor::compile(testing::device(), graph, add(next, cache)),
                         doctest::Contains("expected the next value of 'cache' from store_rows, its only reader"),
                         Error);
  }
  SUBCASE("the cache itself as the output") {
    const Tensor weight = graph.root().parameter("w", {4}, constant(1));
    const Tensor next = store_rows(cache, mul(rows, weight), first);
    update(cache, next);
    const Trainer trainer = [&] {
      Graph other;
      const Tensor w = other.root().parameter("w", {4}, constant(1));
      return Trainer::compile(testing::device(), other, {.loss = mean(w), .precision = Precision::float32()});
    }();
    Predictor predictor = Predictor::compile(trainer, graph, next);
    const std::vector<float> values{1, 2, 3, 4};
    const auto store = [&](std::uint32_t position) {
      return predictor.run({{"rows", std::span(values)}, {"first", std::span<const std::uint32_t>(&position, 1)}});
    };
    CHECK(store(1) == std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0});
    CHECK(store(2) == std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4});
    predictor.clear_caches();
    CHECK(store(0) == std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0});
  }
}

TEST_CASE("predictors share caches of one type and shape only") {
  const Trainer trainer = small_trainer(Precision::float32());
  const Predictor prompt = prompt_predictor(trainer, 4);
  models::GptOptions other = small;
  other.heads = 4;
  CHECK_THROWS_WITH_AS(next_predictor(prompt, other),
                       doctest::Contains("[program] expected a cache 'transformer/h/0/attn/keys' f32 {3, 4, 12, 5}, "
                                         "got f32 {3, 2, 12, 10}"),
                       Error);
}

}  // namespace halfstep
