#pragma once

#include <halfstep/halfstep.h>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/gpt.h"

/// Folders of a GPT-2: see model_folder.h.
namespace samples {

/// What config.json says of a model.
nlohmann::ordered_json gpt_config(const halfstep::models::GptOptions& options);

struct GptConfig {
  halfstep::models::GptOptions model;
  std::optional<std::uint32_t> end{};  ///< the token that a text ends with, if there is one
};
/// Reads config.json. Throws Error that names the file if it cannot be read, lacks a size, or asks for anything that
/// models::gpt does not compute.
GptConfig read_gpt_config(const std::filesystem::path& folder);

/// A tokenizer from a tokenizer.json, or from a folder with one, or with vocab.json and merges.txt.
halfstep::Tokenizer load_tokenizer(const std::filesystem::path& path);

/// The scope that the parameters of model.safetensors are in: "transformer", or none. Throws Error that names the file
/// if it cannot be read, or has no GPT-2.
std::string scope_of_weights(const std::filesystem::path& folder);

/// Throws Error that names model.safetensors unless all of the model's tensors were found in it.
void check_loaded(const halfstep::LoadReport& report, const std::filesystem::path& folder);

/// Prints text as its tokens come, in whole characters.
class TextStream {
 public:
  explicit TextStream(const halfstep::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  void add(std::uint32_t token);
  /// Prints what is left of an incomplete character.
  void finish();

 private:
  const halfstep::Tokenizer& tokenizer_;
  std::vector<std::uint32_t> waiting_;  ///< tokens that end within a character
  std::vector<std::uint32_t> last_;     ///< the token before them: a tokenizer may put a space between
};

}  // namespace samples
