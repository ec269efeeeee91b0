#include "samples/text/model_folder.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "samples/common/checkpoint.h"
#include "samples/common/json.h"
#include "samples/common/say.h"

namespace samples {

void describe_folders(CLI::App& app, const std::string& when) {
  app.get_option("--save")->description(
      fmt::format("Folder for the model {}, which transformers loads, and the checkpoint to go on from", when));
  app.get_option("--resume")->description("Folder that --save wrote, to go on from");
}

namespace {

constexpr const char* tokenizer_config_name = "tokenizer_config.json";
constexpr const char* beside_checkpoint[] = {weights_name, config_name, tokenizer_name, tokenizer_config_name,
                                             vocabulary_name};

}  // namespace

void name_checkpoints(CommonOptions& options) {
  options.beside.assign(std::begin(beside_checkpoint), std::end(beside_checkpoint));
  if (!options.save.empty()) {
    make_folder("--save", options.save);
    options.save /= checkpoint_name;
  }
  if (!options.resume.empty()) options.resume /= checkpoint_name;
}

std::vector<NamedFile> tokenizer_files(const std::string& flag, const std::filesystem::path& path) {
  if (path.empty()) return {};
  std::vector<NamedFile> files{{flag, path}, {flag, path / pairs_name}, {flag, path / merges_name}};
  for (const char* name : beside_checkpoint) files.push_back({flag, path / name});
  return files;
}

nlohmann::json read_config(const std::filesystem::path& file, std::string_view model) {
  std::ifstream stream(file, std::ios::binary);
  const auto refuse = [&](const char* got) {
    refuse_config(file, fmt::format("expected the configuration of a {}, got {}", model, got));
  };
  if (!stream) refuse("no file that can be read");
  nlohmann::json config = parse_json(stream);
  if (!config.is_object()) refuse("no JSON object");
  return config;
}

void refuse_config(const std::filesystem::path& file, const std::string& message) {
  halfstep::fail(halfstep::ErrorCode::bad_file, "config", fmt::format("{}: {}", file.string(), message));
}

void expect_only(const nlohmann::json& config, const char* name, const nlohmann::json& only,
                 const std::filesystem::path& file) {
  const auto found = config.find(name);
  if (found == config.end() || found->is_null() || *found == only) return;
  // A number may have been an f32 before it was written.
  const bool close =
      only.is_number_float() && found->is_number() && std::abs(found->get<double>() / only.get<double>() - 1) <= 1e-6;
  if (close) return;
  refuse_config(file, fmt::format("expected '{}' to be {}, got {}", name, only.dump(), printable(found->dump())));
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
  write_json(folder / tokenizer_config_name, config);
}

double as_meant(float value) {
  return std::stod(fmt::format("{}", value));
}

}  // namespace samples
