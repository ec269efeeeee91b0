#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/model.h"

namespace halfstep::text {

/// What a tokenizer.json says of byte-pair encoding besides the vocabulary.
struct BytePairRules {
  bool bytes = true;         ///< symbols are bytes, else characters
  bool split = true;         ///< into words before merging, as GPT-2 does
  bool space_first = false;  ///< a text that does not begin with a space is given one
  bool whole_words = false;  ///< a word that is in the vocabulary is not merged from its symbols
  std::string unknown{};     ///< of characters that are not in the vocabulary; empty: they are skipped
};

using Merge = std::pair<std::string, std::string>;

/// The symbol that stands for a byte in vocabularies: itself if it is printable, else a character from U+0100 on, as
/// GPT-2 has it.
std::string symbol_of(std::uint8_t byte);

/// The words that GPT-2 merges within: contractions, letters, numbers and others, each with a space before it.
/// Together they are the text.
std::vector<std::u32string_view> words_of(std::u32string_view text);

/// Sennrich et al. 2016: each word's symbols are merged in pairs, always those of the merge that comes first. Throws
/// Error, calling them `place`, unless the vocabulary has what merges take and make (and bytes, if symbols are), and no
/// merge takes what only a later one makes.
std::shared_ptr<const Model> byte_pairs(Vocabulary vocabulary, const std::vector<Merge>& merges, BytePairRules rules,
                                        std::string_view place);

}  // namespace halfstep::text
