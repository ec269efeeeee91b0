#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace halfstep::text {

/// Lets maps of strings be searched by std::string_view.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <typename Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

/// Tokens and their ids, which all differ. Ids may leave gaps.
class Vocabulary {
 public:
  /// Ids from here on are refused, so that a damaged file cannot fill memory.
  static constexpr std::uint32_t most = 1U << 24;

  /// Throws Error that calls `place` what has them if the token or the id is there, or the id is too large.
  void add(std::string token, std::uint32_t id, std::string_view place);
  /// The token's id: the next free one if it is new.
  std::uint32_t add(std::string token);

  std::optional<std::uint32_t> find(std::string_view token) const;
  /// Throws Error that calls `place` what lacks the token.
  std::uint32_t at(std::string_view token, std::string_view place) const;
  /// Empty for an id that is not used. Throws Error if it is size() or more.
  const std::string& token(std::uint32_t id) const;
  /// One more than the largest id.
  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }
  /// The number of tokens: less than size() where ids leave gaps.
  std::uint32_t count() const { return static_cast<std::uint32_t>(ids_.size()); }

 private:
  StringMap<std::uint32_t> ids_;
  std::vector<std::string> tokens_;
};

/// A file's text, without the byte order mark that some editors begin UTF-8 with. Throws Error that names the file if
/// it cannot be read, and the line too if that is not UTF-8.
std::string read_text(const std::filesystem::path& file);
/// The JSON of a file. Throws Error that calls the file `place` if it is nested deeper than any tokenizer's is:
/// printing and copying are recursive, and would exceed the stack. Throws nlohmann::json::exception if it is no JSON.
nlohmann::json parse_json(std::string_view text, std::string_view place);
/// The lines of `text`, without the "\n" or "\r\n" that they end in.
std::vector<std::string_view> lines_of(std::string_view text);

/// The id that a file has. Throws Error that calls the file `place` unless it is a whole number that a Vocabulary
/// takes.
std::uint32_t id_of(const nlohmann::json& number, std::string_view place);
/// The tokens of an object of tokens and ids. Throws Error likewise, also where a token or an id is there twice.
Vocabulary vocabulary_of(const nlohmann::json& ids, std::string_view place);

/// Reads a file with one token a line; the first has id 0. Throws Error that names the file, and the line if a token
/// repeats.
Vocabulary read_vocabulary(const std::filesystem::path& file);

}  // namespace halfstep::text
