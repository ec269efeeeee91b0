#include "samples/text/gpt_folder.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

#include "samples/common/checkpoint.h"
#include "samples/common/say.h"
#include "samples/text/model_folder.h"

namespace samples {
namespace {

namespace fs = std::filesystem;

/// A positive whole number of config.json.
std::int64_t size_of(const nlohmann::json& config, const char* name, const fs::path& file) {
  const auto found = config.find(name);
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (found == config.end()) refuse_config(file, fmt::format("expected a number '{}', got none", name));
  const bool whole = found->is_number_unsigned() && found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  if (!whole || found->get<std::int64_t>() < 1) {
    refuse_config(file, fmt::format("expected '{}' from 1 to {}, got {}", name, most, printable(found->dump())));
  }
  return found->get<std::int64_t>();
}

/// The id of the token that texts end with: a number, or a list of one, as transformers takes both.
std::optional<std::uint32_t> end_of_texts(const nlohmann::json& config, std::int64_t vocabulary, const fs::path& file) {
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return std::nullopt;
  const nlohmann::json& id = found->is_array() && found->size() == 1 ? found->front() : *found;
  if (id.is_number_unsigned() && id.get<std::uint64_t>() < static_cast<std::uint64_t>(vocabulary)) {
    return id.get<std::uint32_t>();
  }
  refuse_config(file, fmt::format("expected 'eos_token_id' to be one token below {}, or null, got {}", vocabulary,
                                  printable(found->dump())));
}

}  // namespace

nlohmann::ordered_json gpt_config(const halfstep::models::GptOptions& options) {
  const double dropout = as_meant(options.dropout);
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", options.vocabulary},
          {"n_positions", options.positions},
          {"n_embd", options.width},
          {"n_layer", options.layers},
          {"n_head", options.heads},
          {"n_inner", nullptr},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"resid_pdrop", dropout},
          {"embd_pdrop", dropout},
          {"attn_pdrop", dropout},
          {"tie_word_embeddings", true},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr}};
}

GptConfig read_gpt_config(const fs::path& folder) {
  const fs::path file = folder / config_name;
  const nlohmann::json config = read_config(file, "GPT-2");
  expect_only(config, "model_type", "gpt2", file);
  expect_only(config, "activation_function", "gelu_new", file);
  expect_only(config, "scale_attn_weights", true, file);
  expect_only(config, "scale_attn_by_inverse_layer_idx", false, file);
  expect_only(config, "tie_word_embeddings", true, file);
  const auto size = [&](const char* name) { return size_of(config, name, file); };
  const halfstep::models::GptOptions options{.layers = size("n_layer"),
                                             .heads = size("n_head"),
                                             .width = size("n_embd"),
                                             .positions = size("n_positions"),
                                             .vocabulary = size("vocab_size"),
                                             .dropout = 0};
  expect_only(config, "n_inner", 4 * options.width, file);
  expect_only(config, "layer_norm_epsilon", 1e-5, file);
  if (options.width % options.heads != 0) {
    refuse_config(file, fmt::format("expected 'n_embd' to be a multiple of 'n_head', got {} and {}", options.width,
                                    options.heads));
  }
  return {.model = options, .end = end_of_texts(config, options.vocabulary, file)};
}

halfstep::Tokenizer load_tokenizer(const fs::path& path) {
  std::error_code error;
  const bool pairs = fs::is_directory(path, error) && !fs::exists(path / tokenizer_name, error) &&
                     fs::exists(path / pairs_name, error);
  if (pairs) return halfstep::Tokenizer::byte_pairs(path / pairs_name, path / merges_name);
  return halfstep::Tokenizer::load(path);
}

std::string scope_of_weights(const fs::path& folder) {
  const fs::path file = folder / weights_name;
  const halfstep::CheckpointSummary summary = halfstep::summarize_checkpoint(file);
  halfstep::check_format(summary.metadata, file.string());
  warn_of_values_not_finite(file, summary);
  const auto has = [&](const char* name) {
    return std::ranges::find(summary.tensors, name, &halfstep::TensorSummary::name) != summary.tensors.end();
  };
  if (has("transformer.wte.weight")) return "transformer";
  if (has("wte.weight")) return "";
  halfstep::fail(halfstep::ErrorCode::bad_file, file.string(),
                 "expected the weights of a GPT-2, with 'wte.weight', got none of that name");
}

void check_loaded(const halfstep::LoadReport& report, const fs::path& folder) {
  const std::string file = (folder / weights_name).string();
  const auto refuse_weights = [&](const std::string& message) {
    halfstep::fail(halfstep::ErrorCode::bad_file, file, message, "config.json is of another model");
  };
  if (!report.mismatched.empty()) refuse_weights(report.mismatched.front());
  if (!report.missing.empty()) refuse_weights(fmt::format("expected a tensor '{}', got none", report.missing.front()));
  // Masks and the tied last layer are no weights of their own.
  for (const std::string& name : report.unexpected) {
    const bool known = name == "lm_head.weight" || name.ends_with(".attn.bias") || name.ends_with(".masked_bias");
    if (!known) refuse_weights(fmt::format("expected no more layers than config.json has, got '{}'", printable(name)));
  }
}

void TextStream::add(std::uint32_t token) {
  constexpr std::size_t longest = 4;  // bytes of a character
  constexpr const char* replacement = "\xEF\xBF\xBD";
  waiting_.push_back(token);
  if (waiting_.size() < longest && tokenizer_.decode(waiting_).ends_with(replacement)) return;
  finish();
}

void TextStream::finish() {
  if (waiting_.empty()) return;
  std::vector<std::uint32_t> tokens = last_;
  tokens.insert(tokens.end(), waiting_.begin(), waiting_.end());
  const std::string before = tokenizer_.decode(last_);
  const std::string text = tokenizer_.decode(tokens);
  say("{}", text.starts_with(before) ? text.substr(before.size()) : tokenizer_.decode(waiting_));
  last_ = {waiting_.back()};
  waiting_.clear();
}

}  // namespace samples
