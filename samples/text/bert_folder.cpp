#include "samples/text/bert_folder.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "samples/text/model_folder.h"

namespace samples {

namespace fs = std::filesystem;

nlohmann::ordered_json bert_config(const halfstep::models::BertOptions& options, std::uint32_t padding,
                                   const std::vector<std::string>& classes) {
  const bool two = classes.size() == 2;
  const double dropout = as_meant(options.dropout);
  nlohmann::ordered_json config{{"architectures", {"BertForSequenceClassification"}},
                                {"model_type", "bert"},
                                {"vocab_size", options.vocabulary},
                                {"hidden_size", options.width},
                                {"num_hidden_layers", options.layers},
                                {"num_attention_heads", options.heads},
                                {"intermediate_size", options.hidden},
                                {"max_position_embeddings", options.positions},
                                {"type_vocab_size", options.token_types},
                                {"hidden_act", "gelu"},
                                {"hidden_dropout_prob", dropout},
                                {"attention_probs_dropout_prob", dropout},
                                {"layer_norm_eps", 1e-12},
                                {"pad_token_id", padding},
                                {"problem_type", two ? "multi_label_classification" : "single_label_classification"}};
  for (std::size_t i = two ? 1 : 0; i < classes.size(); ++i) {
    config["id2label"][std::to_string(two ? 0 : i)] = classes[i];
    config["label2id"][classes[i]] = two ? 0 : i;
  }
  return config;
}

void check_bert_config(const fs::path& folder, const halfstep::models::BertOptions& options) {
  const fs::path file = folder / config_name;
  std::error_code error;
  if (!fs::exists(file, error)) return;
  const nlohmann::json config = read_config(file, "BERT");
  const std::pair<const char*, nlohmann::json> computed[] = {
      {"model_type", "bert"},    {"num_attention_heads", options.heads},  {"hidden_act", "gelu"},
      {"layer_norm_eps", 1e-12}, {"position_embedding_type", "absolute"}, {"is_decoder", false}};
  for (const auto& [name, only] : computed) expect_only(config, name, only, file);
}

std::optional<std::int64_t> positions_in(const fs::path& file, std::int64_t width) {
  const std::string name = "bert.embeddings.position_embeddings.weight";
  std::vector<std::string> names = halfstep::models::bert_other_names(name);
  names.push_back(name);
  for (const halfstep::TensorSummary& tensor : halfstep::summarize_checkpoint(file).tensors) {
    const bool named = std::ranges::find(names, tensor.name) != names.end();
    const bool fits = tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] == width;
    if (named && fits) return tensor.shape[0];
  }
  return {};
}

void save_vocabulary(const fs::path& folder, const halfstep::Tokenizer& tokenizer) {
  const fs::path file = folder / vocabulary_name;
  bool lines = true;
  for (std::uint32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string token = tokenizer.token(id);
    lines = lines && !token.empty() && token.find_first_of("\r\n") == std::string::npos;
  }
  if (lines) return tokenizer.save_vocabulary(file);
  std::error_code error;
  fs::remove(file, error);
}

}  // namespace samples
