#include "text/byte_pairs.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_set>

#include "text/unicode.h"

namespace halfstep::text {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// The character of each byte.
const std::array<char32_t, 256>& byte_characters() {
  static const std::array<char32_t, 256> characters = [] {
    std::array<char32_t, 256> result{};
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      result[byte] = printable ? byte : next++;
    }
    return result;
  }();
  return characters;
}

/// What two adjacent tokens are merged into, and in which order.
struct Rule {
  std::uint32_t rank = none;
  std::uint32_t token = none;
};

std::uint64_t key(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

/// Tokens of a word as a list that merging shortens.
class Merging {
 public:
  Merging(const std::unordered_map<std::uint64_t, Rule>& rules, std::span<const std::uint32_t> symbols)
      : rules_(rules) {
    for (std::size_t i = 0; i < symbols.size(); ++i) parts_.push_back({symbols[i], i - 1, i + 1});
    for (std::size_t i = 0; i + 1 < parts_.size(); ++i) consider(i);
  }

  void run() {
    while (!candidates_.empty()) {
      const auto [rank, at, left, right] = candidates_.top();
      candidates_.pop();
      Part& part = parts_[at];
      // Either part may have been merged since.
      if (part.token != left || part.next >= parts_.size() || parts_[part.next].token != right) continue;
      merge(at, rules_.at(key(left, right)).token);
    }
  }

  void append_to(std::vector<std::uint32_t>& tokens) const {
    for (std::size_t i = 0; i < parts_.size(); i = parts_[i].next) tokens.push_back(parts_[i].token);
  }

 private:
  struct Part {
    std::uint32_t token;
    std::size_t previous;  ///< the largest number before the first
    std::size_t next;      ///< the number of parts after the last
  };
  /// Rank, place of the left part, both tokens.
  using Candidate = std::tuple<std::uint32_t, std::size_t, std::uint32_t, std::uint32_t>;

  void consider(std::size_t at) {
    const std::size_t next = parts_[at].next;
    if (next >= parts_.size()) return;
    const auto rule = rules_.find(key(parts_[at].token, parts_[next].token));
    if (rule != rules_.end()) candidates_.push({rule->second.rank, at, parts_[at].token, parts_[next].token});
  }

  void merge(std::size_t at, std::uint32_t token) {
    Part& part = parts_[at];
    Part& gone = parts_[part.next];
    part.token = token;
    part.next = gone.next;
    gone.token = none;
    if (part.next < parts_.size()) parts_[part.next].previous = at;
    if (part.previous < parts_.size()) consider(part.previous);
    consider(at);
  }

  const std::unordered_map<std::uint64_t, Rule>& rules_;
  std::vector<Part> parts_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
};

class BytePairs : public Model {
 public:
  BytePairs(Vocabulary vocabulary, const std::vector<Merge>& merges, BytePairRules rules, std::string_view place)
      : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)), merges_(merges) {
    if (rules_.bytes) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        byte_tokens_[byte] = vocabulary_.at(symbol_of(static_cast<std::uint8_t>(byte)), place);
      }
    }
    if (!rules_.unknown.empty()) unknown_ = vocabulary_.at(rules_.unknown, place);
    add_merges(place);
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  void encode(std::string_view text, std::vector<std::uint32_t>& tokens) const override {
    if (text.empty()) return;
    std::u32string characters = decode_utf8(text);
    if (rules_.space_first && characters.front() != U' ') characters.insert(characters.begin(), U' ');
    if (!rules_.split) {
      append_word(encode_utf8(characters), tokens);
      return;
    }
    StringMap<std::vector<std::uint32_t>> known;  // words repeat
    for (const std::u32string_view word : words_of(characters)) {
      const auto [entry, is_new] = known.try_emplace(encode_utf8(word));
      if (is_new) append_word(entry->first, entry->second);
      tokens.insert(tokens.end(), entry->second.begin(), entry->second.end());
    }
  }

  void describe(nlohmann::ordered_json& file) const override {
    file["normalizer"] = nullptr;
    file["pre_tokenizer"] = nullptr;
    if (rules_.bytes) {
      file["pre_tokenizer"] = {{"type", "ByteLevel"},
                               {"add_prefix_space", rules_.space_first},
                               {"trim_offsets", true},
                               {"use_regex", rules_.split}};
    }
    nlohmann::ordered_json merges = nlohmann::ordered_json::array();
    for (const Merge& merge : merges_) merges.push_back({merge.first, merge.second});
    file["model"] = {{"type", "BPE"},
                     {"dropout", nullptr},
                     {"unk_token", nullptr},
                     {"continuing_subword_prefix", nullptr},
                     {"end_of_word_suffix", nullptr},
                     {"fuse_unk", false},
                     {"byte_fallback", false},
                     {"ignore_merges", rules_.whole_words}};
    if (!rules_.unknown.empty()) file["model"]["unk_token"] = rules_.unknown;
    file["model"]["merges"] = std::move(merges);
  }

 private:
  /// What merges take is made by an earlier one, or by none.
  void add_merges(std::string_view place) {
    std::unordered_map<std::uint32_t, std::size_t> made_by;
    std::vector<std::array<std::uint32_t, 2>> taken;
    for (const auto& [left, right] : merges_) {
      const std::array<std::uint32_t, 2> parts{vocabulary_.at(left, place), vocabulary_.at(right, place)};
      const std::uint32_t token = vocabulary_.at(left + right, place);
      made_by.try_emplace(token, taken.size());
      // Of one that is there twice, the later place counts, as in Hugging Face's tokenizers.
      merge_rules_[key(parts[0], parts[1])] = Rule{static_cast<std::uint32_t>(taken.size()), token};
      taken.push_back(parts);
    }
    for (std::size_t i = 0; i < taken.size(); ++i) {
      for (const std::uint32_t part : taken[i]) {
        const auto made = made_by.find(part);
        if (made == made_by.end() || made->second < i) continue;
        fail(ErrorCode::bad_file, "merges",
             fmt::format("{}: merge {} of '{}' and '{}' takes '{}', which merge {} makes", place, i + 1,
                         merges_[i].first, merges_[i].second, vocabulary_.token(part), made->second + 1),
             "merges are in the order they were learned in");
      }
    }
  }

  void append_word(std::string_view word, std::vector<std::uint32_t>& tokens) const {
    if (rules_.whole_words) {
      std::string name(word);
      if (rules_.bytes) {
        name.clear();
        for (const char c : word) name += symbol_of(static_cast<std::uint8_t>(c));
      }
      if (const auto whole = vocabulary_.find(name)) {
        tokens.push_back(*whole);
        return;
      }
    }
    Merging merging(merge_rules_, rules_.bytes ? bytes_of(word) : characters_of(word));
    merging.run();
    merging.append_to(tokens);
  }

  std::vector<std::uint32_t> bytes_of(std::string_view word) const {
    std::vector<std::uint32_t> symbols;
    for (const char c : word) symbols.push_back(byte_tokens_[static_cast<std::uint8_t>(c)]);
    return symbols;
  }

  std::vector<std::uint32_t> characters_of(std::string_view word) const {
    std::vector<std::uint32_t> symbols;
    for (const char32_t c : decode_utf8(word)) {
      const auto found = vocabulary_.find(encode_utf8({&c, 1}));
      if (found) {
        symbols.push_back(*found);
      } else if (unknown_) {
        symbols.push_back(*unknown_);
      }
    }
    return symbols;
  }

  Vocabulary vocabulary_;
  BytePairRules rules_;
  std::vector<Merge> merges_;
  std::array<std::uint32_t, 256> byte_tokens_{};
  std::optional<std::uint32_t> unknown_;
  std::unordered_map<std::uint64_t, Rule> merge_rules_;
};

/// The end of the longest range of characters from `start` on that all hold.
std::size_t end_of_run(std::u32string_view text, std::size_t start, const std::function<bool(char32_t)>& holds) {
  while (start < text.size() && holds(text[start])) ++start;
  return start;
}

bool is_other(char32_t c) {
  return !is_space(c) && !is_letter(c) && !is_number(c);
}

/// The length of a contraction that `text` begins with; 0 if it does not.
std::size_t contraction(std::u32string_view text) {
  for (const std::u32string_view ending : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

/// The length of the word that `text`, which is not empty, begins with: what GPT-2's expression
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ matches.
std::size_t first_word(std::u32string_view text) {
  if (const std::size_t length = contraction(text)) return length;
  const std::size_t start = text[0] == U' ' && text.size() > 1 && !is_space(text[1]) ? 1 : 0;
  for (const auto& kind : {is_letter, is_number, is_other}) {
    if (kind(text[start])) return end_of_run(text, start, kind);
  }
  // Spaces; the last of several belongs to the word that follows.
  const std::size_t end = end_of_run(text, 0, is_space);
  return end == text.size() || end == 1 ? end : end - 1;
}

}  // namespace

std::string symbol_of(std::uint8_t byte) {
  std::string symbol;
  append_utf8(symbol, byte_characters()[byte]);
  return symbol;
}

std::vector<std::u32string_view> words_of(std::u32string_view text) {
  std::vector<std::u32string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, first_word(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::shared_ptr<const Model> byte_pairs(Vocabulary vocabulary, const std::vector<Merge>& merges, BytePairRules rules,
                                        std::string_view place) {
  return std::make_shared<BytePairs>(std::move(vocabulary), merges, std::move(rules), place);
}

}  // namespace halfstep::text
