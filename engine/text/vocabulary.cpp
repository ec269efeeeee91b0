#include "text/vocabulary.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/files.h"
#include "base/utf8.h"

namespace halfstep::text {

void Vocabulary::add(std::string token, std::uint32_t id, std::string_view place) {
  if (id >= most) {
    fail(ErrorCode::bad_file, "vocabulary", fmt::format("{}: expected ids below {}, got {}", place, most, id));
  }
  if (const auto there = find(token)) {
    fail(ErrorCode::bad_file, "vocabulary",
         fmt::format("{}: expected every token once, got '{}' as {} and {}", place, token, *there, id));
  }
  if (id >= size()) tokens_.resize(id + 1);
  if (!tokens_[id].empty()) {
    fail(ErrorCode::bad_file, "vocabulary",
         fmt::format("{}: expected every id once, got {} for '{}' and '{}'", place, id, tokens_[id], token));
  }
  tokens_[id] = token;
  ids_.emplace(std::move(token), id);
}

std::uint32_t Vocabulary::add(std::string token) {
  if (const auto there = find(token)) return *there;
  const std::uint32_t id = size();
  add(std::move(token), id, "the tokens");
  return id;
}

std::optional<std::uint32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t Vocabulary::at(std::string_view token, std::string_view place) const {
  if (const auto found = find(token)) return *found;
  fail(ErrorCode::bad_file, "vocabulary", fmt::format("{}: expected the token '{}' in it, got none", place, token));
}

const std::string& Vocabulary::token(std::uint32_t id) const {
  if (id >= size()) fail("vocabulary", fmt::format("expected ids below {}, got {}", size(), id));
  return tokens_[id];
}

std::uint32_t id_of(const nlohmann::json& number, std::string_view place) {
  if (number.is_number_unsigned() && number.get<std::uint64_t>() < Vocabulary::most) return number.get<std::uint32_t>();
  fail(ErrorCode::bad_file, "vocabulary",
       fmt::format("{}: expected ids from 0 to {}, got '{:.40}'", place, Vocabulary::most - 1, number.dump()));
}

Vocabulary vocabulary_of(const nlohmann::json& ids, std::string_view place) {
  if (!ids.is_object()) {
    fail(ErrorCode::bad_file, "vocabulary",
         fmt::format("{}: expected an object of tokens and ids, got '{:.40}'", place, ids.dump()));
  }
  Vocabulary vocabulary;
  for (const auto& [token, id] : ids.items()) vocabulary.add(token, id_of(id, place), place);
  return vocabulary;
}

std::string read_text(const std::filesystem::path& file) {
  const process::MappedFile mapped = process::map_file(file);
  std::string text(mapped.bytes.size(), '\0');
  std::ranges::transform(mapped.bytes, text.begin(), [](std::byte b) { return static_cast<char>(b); });
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  // Texts are decoded, so that a token of other bytes would never be found in one, and would be saved as another.
  if (const std::size_t valid = utf8_bytes(text); valid < text.size()) {
    const auto line = 1 + std::ranges::count(std::string_view(text).substr(0, valid), '\n');
    fail(ErrorCode::bad_file, "text",
         fmt::format("{}: expected UTF-8, got another byte in line {}", file.string(), line));
  }
  return text;
}

nlohmann::json parse_json(std::string_view text, std::string_view place) {
  using Json = nlohmann::json;
  constexpr int deepest = 64;
  return Json::parse(text, [&](int depth, Json::parse_event_t event, Json&) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= deepest) {
      fail(ErrorCode::bad_file, "vocabulary",
           fmt::format("{}: expected JSON nested in at most {} levels, got more", place, deepest));
    }
    return true;
  });
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Vocabulary read_vocabulary(const std::filesystem::path& file) {
  Vocabulary vocabulary;
  std::size_t number = 0;
  const std::string text = read_text(file);
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (line.empty()) {
      fail(ErrorCode::bad_file, "vocabulary", fmt::format("{}: line {} is empty", file.string(), number));
    }
    if (const auto there = vocabulary.find(line)) {
      fail(ErrorCode::bad_file, "vocabulary",
           fmt::format("{}: line {} repeats '{}' of line {}", file.string(), number, line, *there + 1));
    }
    vocabulary.add(std::string(line));
  }
  if (vocabulary.size() == 0) {
    fail(ErrorCode::bad_file, "vocabulary", fmt::format("{}: expected a token a line, got none", file.string()));
  }
  return vocabulary;
}

}  // namespace halfstep::text
