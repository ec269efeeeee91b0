// Goes on with texts, with a GPT-2 from a folder that char_gpt or Hugging Face's transformers wrote:
//
//   $ bin/generate model "ROMEO:" --temperature 0.8 --top-k 40
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "models/gpt_generator.h"
#include "samples/common/command_line.h"
#include "samples/common/say.h"
#include "samples/text/gpt_folder.h"
#include "samples/text/model_folder.h"
#include "samples/text/text_data.h"

using namespace halfstep;

namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path folder;
  std::vector<std::string> prompts;
  std::int64_t tokens = 200;
  std::int64_t number = 1;
  SamplingOptions sampling;
  std::string precision = "float32";
  std::string device;
  bool quiet = false;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("model", options.folder, "Folder with config.json, model.safetensors and the tokenizer's files")
      ->required();
  app.add_option("prompt", options.prompts, "Texts to go on with")->required();
  const auto add = [&](const char* name, auto& value, const char* help, const CLI::Validator& valid) {
    app.add_option(name, value, help)->transform(valid)->capture_default_str();
  };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  add("--tokens", options.tokens, "Tokens to add to each text", samples::whole_number(1, 1 << 24));
  add("--number", options.number, "Texts for each prompt", samples::whole_number(1, 1024));
  add("--top-k", options.sampling.top_k, "Draw from the k most likely tokens only; 0: from all",
      samples::whole_number(0, most));
  add("--seed", options.sampling.seed, "Seed of what is drawn", samples::whole_number(0, most));
  app.add_option("--temperature", options.sampling.temperature, "Logits are divided by it; 0: the most likely token")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--top-p", options.sampling.top_p,
                 "Draw from the most likely tokens only that have this probability together")
      ->check(samples::number_above(0, 1))
      ->capture_default_str();
  app.add_option("--repetition-penalty", options.sampling.repetition_penalty,
                 "Above 1: tokens that are in the text already become less likely")
      ->check(samples::number_above(0, 1e6))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "What is computed in 16 bits: see Precision")
      ->check(CLI::IsMember(Precision::names()))
      ->capture_default_str();
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them")
      ->group(samples::running_group);
  app.add_flag("--quiet", options.quiet, "Print texts only")->group(samples::running_group);
}

/// For each prompt as many as --number asks for, which differ in what is drawn.
std::vector<models::Prompt> prompts_of(const Options& options, const Tokenizer& tokenizer, std::int64_t vocabulary) {
  std::vector<models::Prompt> prompts;
  for (const std::string& text : options.prompts) {
    samples::check_characters(tokenizer, text, "prompt");
    const std::vector<std::uint32_t> tokens = tokenizer.encode(text);
    for (const std::uint32_t token : tokens) {
      if (token < vocabulary) continue;
      fail(ErrorCode::bad_file, (options.folder / samples::config_name).string(),
           fmt::format("expected a vocabulary with token {} of the tokenizer, got {} tokens", token, vocabulary));
    }
    for (std::int64_t i = 0; i < options.number; ++i) {
      prompts.push_back({.tokens = tokens, .sequence = static_cast<std::uint64_t>(i)});
    }
  }
  return prompts;
}

/// Prints the first text as it is written, and then the others.
void write(models::GptGenerator& generator, const std::vector<models::Prompt>& prompts, models::GenerationOptions how,
           const Options& options, const Tokenizer& tokenizer) {
  const auto start = std::chrono::steady_clock::now();
  samples::TextStream stream(tokenizer);
  how.drawn = [&](std::size_t prompt, std::uint32_t token) {
    if (prompt == 0) stream.add(token);
  };
  samples::say("{}", options.prompts.front());
  const std::vector<std::vector<std::uint32_t>> texts = generator.generate(prompts, how);
  stream.finish();
  samples::say("\n");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::size_t tokens = texts.front().size();
  for (std::size_t i = 1; i < texts.size(); ++i) {
    const std::string& prompt = options.prompts[i / static_cast<std::size_t>(options.number)];
    samples::say("---\n{}{}\n", prompt, tokenizer.decode(texts[i]));
    tokens += texts[i].size();
  }
  if (options.quiet) return;
  samples::say("{} tokens in {} {}, {:.1f} tokens/s\n", tokens, texts.size(), texts.size() == 1 ? "text" : "texts",
               static_cast<double>(tokens) / seconds);
}

int run(const Options& options) {
  options.sampling.check();
  const samples::GptConfig config = samples::read_gpt_config(options.folder);
  const Tokenizer tokenizer = samples::load_tokenizer(options.folder);
  const std::vector<models::Prompt> prompts = prompts_of(options, tokenizer, config.model.vocabulary);
  models::GptGenerator::Sizes sizes{.model = config.model, .scope = samples::scope_of_weights(options.folder)};
  sizes.batch = static_cast<std::int64_t>(prompts.size());
  for (const models::Prompt& prompt : prompts) {
    sizes.prompt = std::max(sizes.prompt, static_cast<std::int64_t>(prompt.tokens.size()));
  }
  const Device device = Device::open(options.device);
  models::GptGenerator generator(device, sizes, Precision::level(options.precision));
  samples::check_loaded(generator.load_weights(options.folder / samples::weights_name, {.strict = false}),
                        options.folder);
  watch_interrupts();
  models::GenerationOptions how{.sampling = options.sampling, .tokens = options.tokens, .end = config.end};
  how.vocabulary = std::min(tokenizer.size(), static_cast<std::uint32_t>(config.model.vocabulary));
  how.stop = interrupted;
  write(generator, prompts, how, options, tokenizer);
  return interrupted() ? samples::exit_signal + interrupt_signal() : samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Goes on with texts, with a GPT-2.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
