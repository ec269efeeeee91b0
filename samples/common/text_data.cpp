#include "samples/common/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <string_view>

namespace samples {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& file, const std::string& message) {
  halfstep::fail(halfstep::ErrorCode::bad_file, "data", fmt::format("{}: {}", file.string(), message));
}

std::vector<std::string> read_lines(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file)) {
    refuse(file, "expected a file with a line for each text, got none that can be read");
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  if (lines.empty()) refuse(file, "expected a line for each text, got an empty file");
  return lines;
}

std::uint32_t read_label(std::string_view text, const fs::path& file, std::size_t line) {
  std::uint32_t label = 0;
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (error != std::errc{} || end != text.data() + text.size()) {
    refuse(file, fmt::format("expected a label in line {}, got '{}'", line, text.substr(0, 40)));
  }
  return label;
}

/// The names of labels 0, 1, ...
std::vector<std::string> read_classes(const fs::path& file) {
  std::map<std::uint32_t, std::string> names;
  const std::vector<std::string> lines = read_lines(file);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::size_t tab = lines[i].find('\t');
    const std::uint32_t label = read_label(std::string_view(lines[i]).substr(0, tab), file, i + 1);
    if (tab == std::string::npos) refuse(file, fmt::format("expected a label, a tab and a name in line {}", i + 1));
    names[label] = lines[i].substr(tab + 1);
  }
  std::vector<std::string> classes;
  for (const auto& [label, name] : names) {
    if (label != classes.size()) refuse(file, fmt::format("expected a name of label {}, got none", classes.size()));
    classes.push_back(name);
  }
  if (classes.size() < 2) refuse(file, fmt::format("expected two or more classes, got {}", classes.size()));
  return classes;
}

LabelledTexts read_split(const fs::path& folder, const std::string& split, std::size_t classes,
                         std::optional<std::int64_t> limit) {
  const fs::path labels_file = folder / (split + "_labels.txt");
  LabelledTexts result{.texts = read_lines(folder / (split + "_text.txt")), .labels = {}};
  const std::vector<std::string> labels = read_lines(labels_file);
  if (labels.size() != result.texts.size()) {
    refuse(labels_file,
           fmt::format("expected a label for each of {} texts, got {}", result.texts.size(), labels.size()));
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    result.labels.push_back(read_label(labels[i], labels_file, i + 1));
    if (result.labels.back() >= classes) {
      refuse(labels_file, fmt::format("expected labels below {}, got {} in line {}", classes, labels[i], i + 1));
    }
  }
  const std::size_t kept = std::min(result.texts.size(), static_cast<std::size_t>(limit.value_or(INT64_MAX)));
  result.texts.resize(kept);
  result.labels.resize(kept);
  return result;
}

}  // namespace

TextData read_text_data(const fs::path& folder, std::optional<std::int64_t> limit) {
  TextData data;
  data.classes = read_classes(folder / "mapping.txt");
  data.train = read_split(folder, "train", data.classes.size(), limit);
  data.validation = read_split(folder, "val", data.classes.size(), limit);
  data.test = read_split(folder, "test", data.classes.size(), limit);
  return data;
}

halfstep::Dataset text_set(const std::string& name, const LabelledTexts& texts, const halfstep::Tokenizer& tokenizer,
                           std::int64_t length, std::uint32_t padding, std::uint32_t classes) {
  using halfstep::Field;
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint32_t> lengths;
  for (const std::string& text : texts.texts) {
    const halfstep::Encoding encoding = tokenizer.encode_for_model(text, {}, length);
    tokens.insert(tokens.end(), encoding.tokens.begin(), encoding.tokens.end());
    lengths.push_back(static_cast<std::uint32_t>(encoding.tokens.size()));
    tokens.resize(lengths.size() * static_cast<std::size_t>(length), padding);
  }
  std::vector<Field> fields{Field::own("tokens", {length}, std::move(tokens), tokenizer.size()),
                            Field::own("lengths", {}, std::move(lengths), static_cast<std::uint32_t>(length + 1))};
  if (classes == 2) {
    fields.push_back(Field::own("labels", {1}, std::vector<float>(texts.labels.begin(), texts.labels.end())));
  } else {
    fields.push_back(Field::own("labels", {}, texts.labels, classes));
  }
  return halfstep::Dataset::of(name, std::move(fields));
}

std::int64_t longest_text(const TextData& data, const halfstep::Tokenizer& tokenizer) {
  std::size_t longest = 0;
  for (const LabelledTexts* split : {&data.train, &data.validation, &data.test}) {
    for (const std::string& text : split->texts) {
      longest = std::max(longest, tokenizer.encode_for_model(text).tokens.size());
    }
  }
  return static_cast<std::int64_t>(longest);
}

}  // namespace samples
