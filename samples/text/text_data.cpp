#include "samples/text/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <numeric>
#include <string_view>

#include "samples/common/checkpoint.h"

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
  if (stream.bad()) refuse(file, "expected a file with a line for each text, got one that cannot be read to its end");
  if (lines.empty()) refuse(file, "expected a line for each text, got an empty file");
  drop_byte_order_mark(lines.front());
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
    if (!names.try_emplace(label, lines[i].substr(tab + 1)).second) {
      refuse(file, fmt::format("expected every label once, got {} again in line {}", label, i + 1));
    }
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

void drop_byte_order_mark(std::string& text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
}

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

std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file)) refuse(file, "expected a text, got no file that can be read");
  std::string text;
  const bool ended = !std::getline(stream, text, '\0') || stream.eof();  // no text has that character
  if (stream.bad()) refuse(file, "expected a text, got a file that cannot be read to its end");
  drop_byte_order_mark(text);
  if (text.empty() && ended) refuse(file, "expected a text, got an empty file");
  // Bytes that are not UTF-8 are read as U+FFFD.
  constexpr const char* replacement = "\xEF\xBF\xBD";
  const bool replaced = text.find(replacement) == std::string::npos &&
                        halfstep::Tokenizer::characters(text).find(replacement).has_value();
  if (replaced || !ended) refuse(file, "expected a text in UTF-8, got other bytes");
  return text;
}

void check_characters(const halfstep::Tokenizer& tokenizer, const std::string& text, const fs::path& where) {
  const halfstep::Tokenizer characters = halfstep::Tokenizer::characters(text);
  for (std::uint32_t id = 0; id < characters.size(); ++id) {
    const std::string character = characters.token(id);
    if (!tokenizer.encode(character).empty()) continue;
    refuse(where, fmt::format("expected characters that the tokenizer has tokens for, got '{}'", printable(character)));
  }
}

halfstep::Dataset token_windows(const std::string& name, std::vector<std::uint32_t> tokens, std::int64_t length,
                                std::int64_t stride, std::uint32_t vocabulary) {
  using halfstep::Field;
  if (tokens.size() <= static_cast<std::size_t>(length)) {
    halfstep::fail(halfstep::ErrorCode::bad_file, "data",
                   fmt::format("{}: expected more than {} tokens, got {}", name, length, tokens.size()),
                   "a longer text, or a shorter context");
  }
  Field inputs = vocabulary <= 65536 ? Field::own("tokens", {length},
                                                  std::vector<std::uint16_t>(tokens.begin(), tokens.end()), vocabulary)
                                     : Field::own("tokens", {length}, std::move(tokens), vocabulary);
  inputs.stride = stride;
  Field targets = inputs;
  targets.name = "targets";
  targets.first = 1;
  return halfstep::Dataset::of(name, {std::move(inputs), std::move(targets)});
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

halfstep::Field field_of(const halfstep::Dataset& set, const std::string& name) {
  return *std::ranges::find(set.fields, name, &halfstep::Field::name);
}

std::vector<std::int64_t> bucket_lengths(const halfstep::Dataset& set, std::int64_t count) {
  const halfstep::Field tokens = field_of(set, "tokens");
  const std::int64_t longest = tokens.shape.front();
  std::vector<std::int64_t> choices{0};
  for (std::int64_t length = 8; length < longest; length += 8) choices.push_back(length);
  choices.push_back(longest);
  std::vector<std::int64_t> fitting(choices.size());  // texts that are no longer than each
  for (const std::uint32_t bucket : buckets_of(set, choices)) ++fitting[bucket];
  std::partial_sum(fitting.begin(), fitting.end(), fitting.begin());
  // The fewest tokens of the texts that fit into each choice, where it is the last of so many lengths, and the length
  // before it.
  struct Best {
    std::int64_t tokens = 0;
    std::size_t before = 0;
  };
  std::vector<std::vector<Best>> best{std::vector<Best>(choices.size())};
  for (std::size_t i = 0; i < choices.size(); ++i) best[0][i].tokens = fitting[i] * choices[i];
  for (std::int64_t lengths = 1; lengths < count; ++lengths) {
    best.push_back(best.back());
    for (std::size_t i = 1; i < choices.size(); ++i) {
      for (std::size_t j = 1; j < i; ++j) {
        const std::int64_t sum = best[best.size() - 2][j].tokens + (fitting[i] - fitting[j]) * choices[i];
        if (sum < best.back()[i].tokens) best.back()[i] = {sum, j};
      }
    }
  }
  std::vector<std::int64_t> chosen;
  std::size_t at = choices.size() - 1;
  for (std::size_t lengths = best.size(); at != 0; at = best[--lengths][at].before) chosen.push_back(choices[at]);
  std::ranges::reverse(chosen);
  return chosen;
}

double padding_share(const halfstep::Dataset& set, const std::vector<std::int64_t>& lengths) {
  const auto* const sizes = reinterpret_cast<const std::uint32_t*>(field_of(set, "lengths").data.data());
  double padded = 0;
  for (const std::uint32_t bucket : buckets_of(set, lengths)) padded += static_cast<double>(lengths[bucket]);
  return 1 - std::accumulate(sizes, sizes + set.count, 0.0) / padded;
}

std::vector<std::uint32_t> buckets_of(const halfstep::Dataset& set, const std::vector<std::int64_t>& lengths) {
  const auto* const sizes = reinterpret_cast<const std::uint32_t*>(field_of(set, "lengths").data.data());
  std::vector<std::uint32_t> buckets;
  for (std::int64_t i = 0; i < set.count; ++i) {
    buckets.push_back(
        static_cast<std::uint32_t>(std::ranges::lower_bound(lengths, std::int64_t{sizes[i]}) - lengths.begin()));
  }
  return buckets;
}

}  // namespace samples
