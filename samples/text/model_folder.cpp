#include "samples/text/model_folder.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <utility>

namespace samples {

void describe_folders(CLI::App& app, const std::string& when) {
  app.get_option("--save")->description(
      fmt::format("Folder for the model {}, which transformers loads, and the checkpoint to go on from", when));
  app.get_option("--resume")->description("Folder that --save wrote, to go on from");
}

void name_checkpoints(CommonOptions& options) {
  if (!options.save.empty()) {
    make_folder("--save", options.save);
    options.save /= checkpoint_name;
  }
  if (!options.resume.empty()) options.resume /= checkpoint_name;
}

namespace {

void write_json(const std::filesystem::path& file, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const halfstep::Bytes parts[] = {std::as_bytes(std::span(text))};
  halfstep::write_atomically(file, parts);
}

}  // namespace

void write_config(const std::filesystem::path& folder, const nlohmann::ordered_json& config) {
  write_json(folder / config_name, config);
}

void save_tokenizer(const std::filesystem::path& folder, const halfstep::Tokenizer& tokenizer) {
  constexpr std::pair<const char*, const char*> special[] = {{"unk_token", "[UNK]"},   {"cls_token", "[CLS]"},
                                                             {"sep_token", "[SEP]"},   {"pad_token", "[PAD]"},
                                                             {"mask_token", "[MASK]"}, {"eos_token", "<|endoftext|>"}};
  nlohmann::ordered_json config{{"tokenizer_class", "PreTrainedTokenizerFast"}};
  for (const auto& [name, token] : special) {
    if (tokenizer.find(token)) config[name] = token;
  }
  tokenizer.save(folder / tokenizer_name);
  write_json(folder / "tokenizer_config.json", config);
}

double as_meant(float value) {
  return std::stod(fmt::format("{}", value));
}

void save_weights(halfstep::Trainer& trainer, const std::filesystem::path& folder) {
  try {
    trainer.save_weights(folder / weights_name);
  } catch (const halfstep::Error& error) {
    fmt::print(stderr, "warning: {}\n", error.what());
  }
}

}  // namespace samples
