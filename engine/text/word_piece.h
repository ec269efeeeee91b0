#pragma once

#include <halfstep/text.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/model.h"

namespace halfstep::text {

/// What a tokenizer.json says of WordPiece besides the vocabulary.
struct WordPieceRules {
  bool clean = true;          ///< drops control characters
  bool split_chinese = true;  ///< Chinese characters are words of their own
  bool lower_case = true;
  bool strip_accents = true;
  std::string unknown = "[UNK]";
  std::string prefix = "##";        ///< of pieces that do not begin a word
  std::int64_t longest_word = 100;  ///< characters; longer words are unknown
};

/// The words of a text, normalised, with each punctuation character a word of its own: Devlin et al. 2019.
std::vector<std::u32string> words_of(std::string_view text, const WordPieceRules& rules);

/// Words, and in each the longest pieces from left to right that the vocabulary has. Throws Error, calling the
/// vocabulary `place`, if it lacks the unknown token.
std::shared_ptr<const Model> word_piece(Vocabulary vocabulary, WordPieceRules rules, std::string_view place);

}  // namespace halfstep::text
