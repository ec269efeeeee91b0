#pragma once

#include <halfstep/language.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep {

/// How WordPiece normalises text before it looks for pieces: as BERT's "uncased" models do, or its "cased" ones.
struct WordPieceOptions {
  bool lower_case = true;
  std::optional<bool> strip_accents{};  ///< defaults to lower_case
};

/// How a vocabulary is learned from texts.
struct VocabularyOptions {
  std::uint32_t size = 30000;     ///< tokens at most, special ones included
  std::uint64_t least_count = 2;  ///< pairs that occur less often are not merged
  std::size_t characters =
      1000;  ///< of WordPiece: the most frequent ones that are tokens; words with others are unknown
  std::vector<std::string> special{};  ///< tokens that are never cut; WordPiece has BERT's five besides
};

/// A text, or two, as a model takes them.
struct Encoding {
  std::vector<std::uint32_t> tokens{};
  std::vector<std::uint32_t> segments{};  ///< of each token: 0, or 1 if it belongs to the second text
};

/// Turns text into the ids of tokens and back, as `transformers` does with the same files. Text is UTF-8; bytes that
/// are not count as U+FFFD. A value that never changes: copies share it, as does what it is moved to, and any number of
/// threads may use it.
class HALFSTEP_API Tokenizer {
 public:
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  ~Tokenizer() = default;

  /// WordPiece (BERT), from a vocab.txt with a token a line. Throws Error that names the file if it cannot be read, is
  /// not UTF-8, repeats a token, or lacks "[UNK]".
  static Tokenizer word_piece(const std::filesystem::path& vocabulary, const WordPieceOptions& options = {});
  /// Byte pairs (GPT-2), from its vocab.json and merges.txt. Throws Error that names the file if one cannot be read or
  /// is not UTF-8, the vocabulary lacks a byte or what a merge takes or makes, or merges are out of order.
  static Tokenizer byte_pairs(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);
  /// A tokenizer.json of WordPiece or of byte pairs, or the folder that contains one. What it says of truncation and
  /// padding is not used. Throws Error that names the file if it cannot be read or asks for anything that is not known
  /// here.
  static Tokenizer load(const std::filesystem::path& file);
  /// 256 tokens, one for each byte.
  static Tokenizer bytes();
  /// A token for each character of `text`, in the order of their code points. Other characters are skipped.
  static Tokenizer characters(std::string_view text);
  /// Learns a WordPiece vocabulary: starting from characters, the pair of adjacent pieces that occurs most often within
  /// words becomes a piece. The same texts in any order give the same tokens. Throws Error if the size has no room for
  /// special tokens and characters, or unless special tokens differ and are UTF-8 of two characters or more.
  static Tokenizer train_word_piece(std::span<const std::string> texts, const VocabularyOptions& vocabulary = {},
                                    const WordPieceOptions& options = {});
  /// Learns byte pairs likewise, starting from the 256 bytes. Throws as train_word_piece() does.
  static Tokenizer train_byte_pairs(std::span<const std::string> texts, const VocabularyOptions& vocabulary = {});

  /// One more than the largest id.
  std::uint32_t size() const;
  /// The id of a token, special ones included; none if there is no such token.
  std::optional<std::uint32_t> find(std::string_view token) const;
  /// Empty if no token has the id, which is below size().
  std::string token(std::uint32_t id) const;

  /// The tokens of a text. Special tokens that it names ("[MASK]") are found, none is added.
  std::vector<std::uint32_t> encode(std::string_view text) const;
  /// What a model takes: of BERT [CLS] text [SEP], or [CLS] text [SEP] second [SEP]. At most `longest` tokens: the end
  /// of the longer text is cut off. 0: no limit. Throws Error if `longest` leaves no room for the special tokens.
  Encoding encode_for_model(std::string_view text, std::optional<std::string_view> second = {},
                            std::int64_t longest = 0) const;
  /// The text of tokens, without special ones unless they are asked for. It is valid UTF-8. Throws Error if an id is
  /// size() or more.
  std::string decode(std::span<const std::uint32_t> tokens, bool with_special = false) const;

  /// Writes a tokenizer.json, which `transformers` loads too. Throws Error if it cannot be written; then an existing
  /// file stays.
  void save(const std::filesystem::path& file) const;
  /// Likewise a file with one token a line, as WordPiece reads it.
  void save_vocabulary(const std::filesystem::path& file) const;

  class Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace halfstep
