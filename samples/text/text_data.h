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

/// Takes the byte order mark, which some editors begin UTF-8 with, off the front of what a file begins with: it is no
/// part of its text.
void drop_byte_order_mark(std::string& text);

/// Reads the first `limit` texts of each split, or all. Throws Error that names the file, and the line, if one is
/// missing or empty, splits differ in length, or a label has no name.
TextData read_text_data(const std::filesystem::path& folder, std::optional<std::int64_t> limit);

/// A batch's fields: "tokens" {length}, padded with `padding`, "lengths" {} and "labels" {1}. `labels` are f32 of 0 or
/// 1 if there are two classes, u32 {} if more. Longer texts are cut.
halfstep::Dataset text_set(const std::string& name, const LabelledTexts& texts, const halfstep::Tokenizer& tokenizer,
                           std::int64_t length, std::uint32_t padding, std::uint32_t classes);

/// A file's text. Throws Error that names it if it cannot be read, is empty or is not UTF-8.
std::string read_text(const std::filesystem::path& file);

/// Throws Error that names `where` a text is from, and the first character in it that the tokenizer has no token for.
void check_characters(const halfstep::Tokenizer& tokenizer, const std::string& text,
                      const std::filesystem::path& where);

/// Windows of `length` tokens on a text, which begin `stride` tokens apart, for a language model: a batch's fields
/// "tokens" {length} and "targets" {length}, the same one token later. Throws Error unless there are more than `length`
/// tokens, all below `vocabulary`.
halfstep::Dataset token_windows(const std::string& name, std::vector<std::uint32_t> tokens, std::int64_t length,
                                std::int64_t stride, std::uint32_t vocabulary);

/// The tokens of the longest text, special ones included.
std::int64_t longest_text(const TextData& data, const halfstep::Tokenizer& tokenizer);

/// A field of integers of a text_set().
halfstep::Field field_of(const halfstep::Dataset& set, const std::string& name);

/// Lengths to pad the texts of a text_set() to: at most `count`, increasing, the last one that of the set, the others
/// multiples of 8. No others take fewer tokens of padding.
std::vector<std::int64_t> bucket_lengths(const halfstep::Dataset& set, std::int64_t count);

/// The share of padding in a text_set() whose texts are padded to the shortest of `lengths` that they fit into.
double padding_share(const halfstep::Dataset& set, const std::vector<std::int64_t>& lengths);

/// For each text, the index of that length.
std::vector<std::uint32_t> buckets_of(const halfstep::Dataset& set, const std::vector<std::int64_t>& lengths);

}  // namespace samples
