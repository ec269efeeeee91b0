#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "text/byte_pairs.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"
#include "text/word_piece.h"

namespace halfstep {
namespace text {
namespace {

/// A word as the ids of its symbols, and how often texts have it.
struct Word {
  std::vector<std::uint32_t> symbols;
  std::uint64_t count = 0;
};

/// Merges the pair that occurs most often, again and again. Of pairs that occur equally often, the one with the smaller
/// ids comes first.
class Learning {
 public:
  /// `prefix` begins symbols that do not begin a word.
  Learning(Vocabulary& vocabulary, std::vector<Word> words, std::string prefix)
      : vocabulary_(vocabulary), words_(std::move(words)), prefix_(std::move(prefix)) {
    for (std::size_t i = 0; i < words_.size(); ++i) count_pairs(i, true);
    for (const auto& [pair, count] : counts_) queue_.push(candidate(count, pair));
  }

  std::vector<Merge> run(std::uint32_t size, std::uint64_t least_count) {
    std::vector<Merge> merges;
    while (vocabulary_.size() < size && !queue_.empty()) {
      const auto [count, left, right] = queue_.top();
      queue_.pop();
      const Pair pair{~left, ~right};
      const auto now = counts_.find(pair);
      if (now == counts_.end() || now->second != count) continue;  // counted anew since
      if (count < least_count) break;
      merges.emplace_back(vocabulary_.token(pair.first), vocabulary_.token(pair.second));
      merge(pair);
    }
    return merges;
  }

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  /// The count, and the pair with its bits flipped, so that smaller ids are larger.
  using Candidate = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;
  static Candidate candidate(std::uint64_t count, Pair pair) { return {count, ~pair.first, ~pair.second}; }

  /// Adds or subtracts the pairs of a word.
  void count_pairs(std::size_t index, bool add) {
    const Word& word = words_[index];
    for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i) {
      const Pair pair{word.symbols[i], word.symbols[i + 1]};
      std::uint64_t& count = counts_[pair];
      count = add ? count + word.count : count - word.count;
      if (add) places_[pair].push_back(index);
    }
  }

  void merge(Pair pair) {
    std::string end = vocabulary_.token(pair.second);
    if (!prefix_.empty() && end.starts_with(prefix_)) end.erase(0, prefix_.size());
    const std::uint32_t token = vocabulary_.add(vocabulary_.token(pair.first) + end);
    std::vector<std::size_t> places = std::move(places_[pair]);
    std::ranges::sort(places);
    const auto repeated = std::ranges::unique(places);
    places.erase(repeated.begin(), repeated.end());
    std::set<Pair> changed;
    for (const std::size_t index : places) {
      count_pairs(index, false);
      note_pairs(index, changed);
      replace(words_[index].symbols, pair, token);
      count_pairs(index, true);
      note_pairs(index, changed);
    }
    for (const Pair& other : changed) {
      const std::uint64_t count = counts_[other];
      if (count > 0) {
        queue_.push(candidate(count, other));
      } else {
        counts_.erase(other);
        places_.erase(other);
      }
    }
  }

  void note_pairs(std::size_t index, std::set<Pair>& pairs) const {
    const std::vector<std::uint32_t>& symbols = words_[index].symbols;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) pairs.emplace(symbols[i], symbols[i + 1]);
  }

  static void replace(std::vector<std::uint32_t>& symbols, Pair pair, std::uint32_t token) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const bool found = i + 1 < symbols.size() && Pair{symbols[i], symbols[i + 1]} == pair;
      symbols[kept++] = found ? token : symbols[i];
      if (found) ++i;
    }
    symbols.resize(kept);
  }

  Vocabulary& vocabulary_;
  std::vector<Word> words_;
  std::string prefix_;
  std::map<Pair, std::uint64_t> counts_;
  std::map<Pair, std::vector<std::size_t>> places_;  ///< words that have the pair, and some that had it
  std::priority_queue<Candidate> queue_;
};

/// The characters that occur most often, in the order of their code points.
std::set<char32_t> alphabet_of(const std::map<std::u32string, std::uint64_t>& words, std::size_t most) {
  std::map<char32_t, std::uint64_t> counts;
  for (const auto& [word, count] : words) {
    for (const char32_t c : word) counts[c] += count;
  }
  std::vector<std::pair<char32_t, std::uint64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater<>{}, &std::pair<char32_t, std::uint64_t>::second);
  sorted.resize(std::min(most, sorted.size()));
  std::set<char32_t> alphabet;
  for (const auto& [c, count] : sorted) alphabet.insert(c);
  return alphabet;
}

/// Adds the symbols that words consist of; returns the words that consist of the alphabet.
std::vector<Word> in_pieces(const std::map<std::u32string, std::uint64_t>& words, const std::set<char32_t>& alphabet,
                            const std::string& prefix, Vocabulary& vocabulary) {
  std::set<char32_t> within;
  std::vector<std::pair<std::u32string_view, std::uint64_t>> known;
  for (const auto& [word, count] : words) {
    if (!std::ranges::all_of(word, [&](char32_t c) { return alphabet.contains(c); })) continue;
    within.insert(word.begin() + 1, word.end());
    known.emplace_back(word, count);
  }
  for (const char32_t c : alphabet) vocabulary.add(encode_utf8({&c, 1}));
  for (const char32_t c : within) vocabulary.add(prefix + encode_utf8({&c, 1}));
  std::vector<Word> result;
  for (const auto& [word, count] : known) {
    Word pieces{.symbols = {}, .count = count};
    for (std::size_t i = 0; i < word.size(); ++i) {
      pieces.symbols.push_back(vocabulary.add((i > 0 ? prefix : "") + encode_utf8(word.substr(i, 1))));
    }
    result.push_back(std::move(pieces));
  }
  return result;
}

/// Special tokens come first, and are no other tokens.
void add_special(Vocabulary& tokens, const std::vector<std::string>& special) {
  for (const std::string& token : special) {
    if (utf8_bytes(token) < token.size()) {
      fail("vocabulary", fmt::format("expected special tokens in UTF-8, got '{}'", token));
    }
    if (decode_utf8(token).size() < 2 || tokens.find(token)) {
      fail("vocabulary",
           fmt::format("expected special tokens that differ, of two characters or more, got '{}'", token));
    }
    tokens.add(token);
  }
}

void expect_room(std::uint32_t size, std::uint32_t taken, std::string_view by) {
  if (size < taken || size > Vocabulary::most) {
    fail("vocabulary",
         fmt::format("expected a size from {}, which {} take, to {}, got {}", taken, by, Vocabulary::most, size));
  }
}

}  // namespace
}  // namespace text

Tokenizer Tokenizer::train_word_piece(std::span<const std::string> texts, const VocabularyOptions& vocabulary,
                                      const WordPieceOptions& options) {
  const text::WordPieceRules rules{.lower_case = options.lower_case,
                                   .strip_accents = options.strip_accents.value_or(options.lower_case)};
  std::map<std::u32string, std::uint64_t> words;
  for (const std::string& text : texts) {
    for (std::u32string& word : text::words_of(text, rules)) {
      if (static_cast<std::int64_t>(word.size()) <= rules.longest_word) ++words[std::move(word)];
    }
  }
  text::Vocabulary tokens;
  for (const char* token :
       {text::padding_token, text::unknown_token, text::class_token, text::separator_token, text::mask_token}) {
    tokens.add(token);
  }
  text::add_special(tokens, vocabulary.special);
  std::vector<text::Word> pieces =
      text::in_pieces(words, text::alphabet_of(words, vocabulary.characters), rules.prefix, tokens);
  text::expect_room(vocabulary.size, tokens.size(), "special tokens and characters");
  text::Learning(tokens, std::move(pieces), rules.prefix).run(vocabulary.size, vocabulary.least_count);
  return text::bert_tokenizer(std::move(tokens), options, "the vocabulary", vocabulary.special);
}

Tokenizer Tokenizer::train_byte_pairs(std::span<const std::string> texts, const VocabularyOptions& vocabulary) {
  text::Vocabulary tokens;
  std::vector<Impl::Added> added;
  text::add_special(tokens, vocabulary.special);
  for (const std::string& token : vocabulary.special) added.push_back({.text = token, .id = tokens.at(token, "")});
  std::vector<std::uint32_t> bytes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes.push_back(tokens.add(text::symbol_of(static_cast<std::uint8_t>(byte))));
  }
  text::expect_room(vocabulary.size, tokens.size(), "special tokens and bytes");
  std::map<std::string, std::uint64_t> counts;
  for (const std::string& text : texts) {
    const std::u32string characters = text::decode_utf8(text);
    for (const std::u32string_view word : text::words_of(characters)) ++counts[text::encode_utf8(word)];
  }
  std::vector<text::Word> words;
  for (const auto& [word, count] : counts) {
    text::Word symbols{.symbols = {}, .count = count};
    for (const char c : word) symbols.symbols.push_back(bytes[static_cast<std::uint8_t>(c)]);
    words.push_back(std::move(symbols));
  }
  const std::vector<text::Merge> merges =
      text::Learning(tokens, std::move(words), "").run(vocabulary.size, vocabulary.least_count);
  return Tokenizer(std::make_shared<Impl>(text::byte_pairs(std::move(tokens), merges, {}, "the vocabulary"),
                                          text::Decoder{.kind = text::Decoder::Kind::bytes}, std::move(added),
                                          Impl::plain_template(false), Impl::plain_template(true)));
}

}  // namespace halfstep
