#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace samples {

/// Texts and the index of each one's class.
struct LabelledTexts {
  std::vector<std::string> texts;
  std::vector<std::uint32_t> labels;
};

/// A set for classifying texts, in TweetEval's layout: files train_text.txt, train_labels.txt, val_text.txt,
/// val_labels.txt, test_text.txt and test_labels.txt with a text or a label a line, and mapping.txt with
/// "LABEL<tab>NAME" a line.
struct TextData {
  LabelledTexts train;
  LabelledTexts validation;
  LabelledTexts test;
  std::vector<std::string> classes;
};

/// Reads the first `limit` texts of each split, or all. Throws Error that names the file, and the line, if one is
/// missing or empty, splits differ in length, or a label has no name.
TextData read_text_data(const std::filesystem::path& folder, std::optional<std::int64_t> limit);

/// A batch's fields: "tokens" {length}, padded with `padding`, "lengths" {} and "labels" {1}. `labels` are f32 of 0 or
/// 1 if there are two classes, u32 {} if more. Longer texts are cut.
halfstep::Dataset text_set(const std::string& name, const LabelledTexts& texts, const halfstep::Tokenizer& tokenizer,
                           std::int64_t length, std::uint32_t padding, std::uint32_t classes);

/// The tokens of the longest text, special ones included.
std::int64_t longest_text(const TextData& data, const halfstep::Tokenizer& tokenizer);

}  // namespace samples
