#include "text/word_piece.h"

#include <halfstep/error.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "text/unicode.h"

namespace halfstep::text {
namespace {

/// Drops what is no text, and puts a space in the place of each space character.
std::u32string cleaned(std::u32string_view text) {
  std::u32string result;
  for (const char32_t c : text) {
    const bool line = c == U'\t' || c == U'\n' || c == U'\r';
    if (c == 0 || c == replacement || (is_control(c) && !line)) continue;
    result.push_back(is_space(c) ? U' ' : c);
  }
  return result;
}

std::u32string with_spaces_around_chinese(std::u32string_view text) {
  std::u32string result;
  for (const char32_t c : text) {
    if (is_chinese(c)) {
      result += {U' ', c, U' '};
    } else {
      result.push_back(c);
    }
  }
  return result;
}

std::u32string normalised(std::u32string text, const WordPieceRules& rules) {
  if (rules.clean) text = cleaned(text);
  if (rules.split_chinese) text = with_spaces_around_chinese(text);
  if (rules.strip_accents) {
    text = decompose(text);
    std::erase_if(text, is_mark);
  }
  if (!rules.lower_case) return text;
  std::u32string lower;
  for (const char32_t c : text) append_lower(lower, c);
  return lower;
}

class WordPiece : public Model {
 public:
  WordPiece(Vocabulary vocabulary, WordPieceRules rules, std::string_view place)
      : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)), unknown_(vocabulary_.at(rules_.unknown, place)) {
    for (std::uint32_t id = 0; id < vocabulary_.size(); ++id) {
      longest_token_ = std::max(longest_token_, vocabulary_.token(id).size());
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  void encode(std::string_view text, std::vector<std::uint32_t>& tokens) const override {
    for (const std::u32string& word : words_of(text, rules_)) append_word(word, tokens);
  }

  void describe(nlohmann::ordered_json& file) const override {
    file["normalizer"] = nullptr;
    if (rules_.clean || rules_.split_chinese || rules_.strip_accents || rules_.lower_case) {
      file["normalizer"] = {{"type", "BertNormalizer"},
                            {"clean_text", rules_.clean},
                            {"handle_chinese_chars", rules_.split_chinese},
                            {"strip_accents", rules_.strip_accents},
                            {"lowercase", rules_.lower_case}};
    }
    file["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    file["model"] = {{"type", "WordPiece"},
                     {"unk_token", rules_.unknown},
                     {"continuing_subword_prefix", rules_.prefix},
                     {"max_input_chars_per_word", rules_.longest_word}};
  }

 private:
  void append_word(const std::u32string& word, std::vector<std::uint32_t>& tokens) const {
    const std::size_t before = tokens.size();
    bool known = static_cast<std::int64_t>(word.size()) <= rules_.longest_word;
    for (std::size_t start = 0; known && start < word.size();) {
      const std::size_t end = append_piece(word, start, tokens);
      known = end > start;
      start = end;
    }
    if (known) return;
    tokens.resize(before);
    tokens.push_back(unknown_);
  }

  /// Appends the longest piece of `word` that begins at `start`; returns its end, `start` if there is none.
  std::size_t append_piece(const std::u32string& word, std::size_t start, std::vector<std::uint32_t>& tokens) const {
    std::string piece = start > 0 ? rules_.prefix : "";
    std::vector<std::size_t> ends;  // of `piece` after each character
    for (std::size_t i = start; i < word.size() && piece.size() <= longest_token_; ++i) {
      append_utf8(piece, word[i]);
      ends.push_back(piece.size());
    }
    for (std::size_t count = ends.size(); count > 0; --count) {
      const auto found = vocabulary_.find(std::string_view(piece).substr(0, ends[count - 1]));
      if (!found) continue;
      tokens.push_back(*found);
      return start + count;
    }
    return start;
  }

  Vocabulary vocabulary_;
  WordPieceRules rules_;
  std::uint32_t unknown_;
  std::size_t longest_token_ = 0;  ///< bytes
};

}  // namespace

std::vector<std::u32string> words_of(std::string_view text, const WordPieceRules& rules) {
  std::vector<std::u32string> words;
  bool within = false;
  for (const char32_t c : normalised(decode_utf8(text), rules)) {
    if (is_space(c)) {
      within = false;
    } else if (is_punctuation(c)) {
      words.emplace_back(1, c);
      within = false;
    } else if (std::exchange(within, true)) {
      words.back().push_back(c);
    } else {
      words.emplace_back(1, c);
    }
  }
  return words;
}

std::shared_ptr<const Model> word_piece(Vocabulary vocabulary, WordPieceRules rules, std::string_view place) {
  return std::make_shared<WordPiece>(std::move(vocabulary), std::move(rules), place);
}

}  // namespace halfstep::text
