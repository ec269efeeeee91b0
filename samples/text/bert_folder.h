#pragma once

#include <halfstep/halfstep.h>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/bert.h"

/// Folders of a BERT that classifies: see model_folder.h.
namespace samples {

/// What config.json says of a model with the token `padding`.
nlohmann::ordered_json bert_config(const halfstep::models::BertOptions& options, std::uint32_t padding,
                                   const std::vector<std::string>& classes);

/// Throws Error if a folder's config.json says what the shapes of weights do not: that the model is computed in another
/// way. There need be none.
void check_bert_config(const std::filesystem::path& folder, const halfstep::models::BertOptions& options);

/// How many positions the BERT in a file of weights has; none if the file has no BERT of that width. Throws Error if it
/// cannot be read.
std::optional<std::int64_t> positions_in(const std::filesystem::path& file, std::int64_t width);

/// Writes vocab.txt where it can have the tokens: each a line, and each id one. Otherwise none stays, which would be
/// another model's. Throws Error if it cannot be written.
void save_vocabulary(const std::filesystem::path& folder, const halfstep::Tokenizer& tokenizer);

}  // namespace samples
