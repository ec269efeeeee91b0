#pragma once

#include <halfstep/halfstep.h>

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "samples/common/command_line.h"

/// Folders as Hugging Face's transformers reads and writes them: config.json, model.safetensors and the tokenizer's
/// files, here with a checkpoint to go on from.
namespace samples {

inline constexpr const char* checkpoint_name = "checkpoint.safetensors";
inline constexpr const char* weights_name = "model.safetensors";
inline constexpr const char* config_name = "config.json";
inline constexpr const char* tokenizer_name = "tokenizer.json";
inline constexpr const char* vocabulary_name = "vocab.txt";
/// Of a GPT-2's tokenizer, where there is no tokenizer.json.
inline constexpr const char* pairs_name = "vocab.json";
inline constexpr const char* merges_name = "merges.txt";

/// Says in the help of --save and --resume that they name folders. `when` is when the model is saved.
void describe_folders(CLI::App& app, const std::string& when);

/// Makes the folder that --save names, and has --save and --resume mean the checkpoints in their folders, with the
/// files that a model has beside them.
void name_checkpoints(CommonOptions& options);

/// For check_files: a tokenizer's file, or a folder with one and its model, that a flag names. None if `path`
/// is empty; not all need exist.
std::vector<NamedFile> tokenizer_files(const std::string& flag, const std::filesystem::path& path);

/// What a config.json says. Throws Error that names the file, and the `model` that it should be of, if it cannot be
/// read or is no JSON object.
nlohmann::json read_config(const std::filesystem::path& file, std::string_view model);

/// Throws an Error about a config.json.
[[noreturn]] void refuse_config(const std::filesystem::path& file, const std::string& message);

/// Throws Error if a config.json says anything but `only` of what the samples' models have one way to compute.
void expect_only(const nlohmann::json& config, const char* name, const nlohmann::json& only,
                 const std::filesystem::path& file);

/// Writes config.json. Bytes that are not UTF-8 are replaced. Throws Error if it cannot be written.
void write_config(const std::filesystem::path& folder, const nlohmann::ordered_json& config);

/// Writes tokenizer.json, and tokenizer_config.json: without that, transformers would cut a text as the model's own
/// tokenizers do, whatever tokenizer.json says. Throws Error if they cannot be written.
void save_tokenizer(const std::filesystem::path& folder, const halfstep::Tokenizer& tokenizer);

/// A number as it was meant: 0.1 for an f32 that is nearest to it.
double as_meant(float value);

}  // namespace samples
