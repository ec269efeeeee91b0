#include "models/gpt_generator.h"

#include <halfstep/error.h>

#include <algorithm>
#include <utility>

namespace halfstep::models {
namespace {

GptGenerator::Sizes checked(GptGenerator::Sizes sizes) {
  if (sizes.batch < 1 || sizes.prompt < 1 || sizes.model.positions < 1) {
    fail("generate", "expected a batch, a prompt and positions of 1 or more, got " + std::to_string(sizes.batch) +
                         ", " + std::to_string(sizes.prompt) + " and " + std::to_string(sizes.model.positions));
  }
  // A text that goes on from half of the positions is a prompt too.
  sizes.prompt = std::min(sizes.model.positions, std::max(sizes.prompt, sizes.model.positions / 2));
  sizes.model.dropout = 0;
  return sizes;
}

Scope scope_of(Graph& graph, const std::string& name) {
  return name.empty() ? graph.root() : graph.root() / name;
}

/// The logits of the two kinds of runs, which share parameters and caches by name.
Tensor prompt_logits(Graph& graph, const GptGenerator::Sizes& sizes) {
  const GptPrompt prompt{.tokens = graph.input("tokens", {sizes.batch, sizes.prompt}, DType::u32),
                         .first = graph.input("first", {sizes.batch}, DType::u32),
                         .last = graph.input("last", {sizes.batch}, DType::u32)};
  return gpt_prompt(scope_of(graph, sizes.scope), prompt, sizes.model);
}

Tensor next_logits(Graph& graph, const GptGenerator::Sizes& sizes) {
  const GptNext next{.tokens = graph.input("tokens", {sizes.batch}, DType::u32),
                     .positions = graph.input("positions", {sizes.batch}, DType::u32),
                     .lengths = graph.input("lengths", {sizes.batch}, DType::u32)};
  return gpt_next(scope_of(graph, sizes.scope), next, sizes.model);
}

Predictor next_predictor(const Predictor& prompt, const GptGenerator::Sizes& sizes) {
  Graph graph;
  const Tensor logits = next_logits(graph, sizes);
  return Predictor::compile(prompt, graph, logits);
}

}  // namespace

GptGenerator::GptGenerator(const Device& device, const Sizes& sizes, const Precision& precision)
    : sizes_(checked(sizes)) {
  Graph graph;
  const Tensor logits = prompt_logits(graph, sizes_);
  prompt_ = Predictor::compile(device, graph, logits, precision);
  next_ = next_predictor(*prompt_, sizes_);
}

GptGenerator::GptGenerator(const Trainer& trainer, const Sizes& sizes) : sizes_(checked(sizes)) {
  Graph graph;
  const Tensor logits = prompt_logits(graph, sizes_);
  prompt_ = Predictor::compile(trainer, graph, logits);
  next_ = next_predictor(*prompt_, sizes_);
}

LoadReport GptGenerator::load_weights(const std::filesystem::path& path, const LoadOptions& options) {
  return prompt_->load_weights(path, options);
}

void GptGenerator::check(const std::vector<Prompt>& prompts, const GenerationOptions& options) const {
  options.sampling.check();
  if (prompts.empty() || prompts.size() > static_cast<std::size_t>(sizes_.batch)) {
    fail("generate",
         "expected 1 to " + std::to_string(sizes_.batch) + " prompts, got " + std::to_string(prompts.size()));
  }
  if (options.tokens < 0 || options.vocabulary > sizes_.model.vocabulary) {
    fail("generate", "expected 0 or more tokens, drawn from at most " + std::to_string(sizes_.model.vocabulary) +
                         ", got " + std::to_string(options.tokens) + " from " + std::to_string(options.vocabulary));
  }
  const std::int64_t known = options.vocabulary > 0 ? options.vocabulary : sizes_.model.vocabulary;
  for (const Prompt& prompt : prompts) {
    if (prompt.tokens.empty()) fail("generate", "expected a prompt of one token or more, got none");
    for (const std::uint32_t token : prompt.tokens) {
      if (token >= known) {
        fail("generate",
             "expected tokens below the vocabulary's " + std::to_string(known) + ", got " + std::to_string(token));
      }
    }
  }
}

/// Whether a text must be computed anew before its next token can be drawn.
bool GptGenerator::full(const Text& text) const {
  return !text.computed || static_cast<std::int64_t>(text.kept) >= sizes_.model.positions;
}

/// Computes the texts that are not in the caches, or fill them, from their last tokens; leaves the others' caches as
/// they are. The logits of the others mean nothing.
std::vector<float> GptGenerator::run_prompts(std::vector<Text>& texts) {
  const auto batch = static_cast<std::size_t>(sizes_.batch);
  const auto length = static_cast<std::size_t>(sizes_.prompt);
  const auto positions = static_cast<std::size_t>(sizes_.model.positions);
  std::vector<std::uint32_t> tokens(batch * length);
  std::vector<std::uint32_t> first(batch, static_cast<std::uint32_t>(positions));
  std::vector<std::uint32_t> last(batch);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Text& text = texts[i];
    if (text.done || !full(text)) continue;
    const std::size_t most = text.computed ? std::max<std::size_t>(1, positions / 2) : length;
    text.kept = std::min(most, text.tokens.size());
    text.computed = true;
    std::copy(text.tokens.end() - static_cast<std::ptrdiff_t>(text.kept), text.tokens.end(),
              tokens.begin() + static_cast<std::ptrdiff_t>(i * length));
    first[i] = 0;
    last[i] = static_cast<std::uint32_t>(i * length + text.kept - 1);
  }
  return prompt_->run({{"tokens", std::span<const std::uint32_t>(tokens)},
                       {"first", std::span<const std::uint32_t>(first)},
                       {"last", std::span<const std::uint32_t>(last)}});
}

/// Adds the last token of each text to the caches. Of texts that are done, or were just computed, this stores something
/// at a place that is written again before it is read.
std::vector<float> GptGenerator::run_next(const std::vector<Text>& texts) {
  const auto batch = static_cast<std::size_t>(sizes_.batch);
  std::vector<std::uint32_t> tokens(batch);
  std::vector<std::uint32_t> positions(batch);
  std::vector<std::uint32_t> lengths(batch, 1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto place = std::min(static_cast<std::int64_t>(texts[i].kept), sizes_.model.positions - 1);
    tokens[i] = texts[i].tokens.back();
    positions[i] = static_cast<std::uint32_t>(place);
    lengths[i] = positions[i] + 1;
  }
  return next_->run({{"tokens", std::span<const std::uint32_t>(tokens)},
                     {"positions", std::span<const std::uint32_t>(positions)},
                     {"lengths", std::span<const std::uint32_t>(lengths)}});
}

std::vector<std::vector<std::uint32_t>> GptGenerator::generate(const std::vector<Prompt>& prompts,
                                                               const GenerationOptions& options) {
  check(prompts, options);
  prompt_->clear_caches();  // of what an earlier text left, which may be infinite
  const auto row = static_cast<std::size_t>(sizes_.model.vocabulary);
  const std::size_t known = options.vocabulary > 0 ? options.vocabulary : row;
  std::vector<Text> texts;
  for (const Prompt& prompt : prompts) texts.push_back({.tokens = prompt.tokens, .sequence = prompt.sequence});
  std::vector<std::vector<std::uint32_t>> results(prompts.size());
  for (std::int64_t step = 0; step < options.tokens && !options.stop(); ++step) {
    std::vector<bool> anew;
    for (const Text& text : texts) anew.push_back(!text.done && full(text));
    const bool any_next = std::ranges::any_of(texts, [&](const Text& text) { return !text.done && !full(text); });
    // Before those that are computed anew: the place after their tokens is not one that they have.
    const std::vector<float> next = any_next ? run_next(texts) : std::vector<float>();
    const bool any_anew = std::ranges::find(anew, true) != anew.end();
    const std::vector<float> fresh = any_anew ? run_prompts(texts) : std::vector<float>();
    if (!any_next && !any_anew) break;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Text& text = texts[i];
      if (text.done) continue;
      if (!anew[i]) ++text.kept;
      const std::span logits = std::span(anew[i] ? fresh : next).subspan(i * row, known);
      const std::uint32_t token = sample_token(logits, text.tokens, options.sampling, text.sequence);
      text.tokens.push_back(token);
      results[i].push_back(token);
      text.done = options.end == token;
      if (options.drawn) options.drawn(i, token);
    }
  }
  return results;
}

}  // namespace halfstep::models
