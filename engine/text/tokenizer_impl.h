#pragma once

#include <halfstep/text.h>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/decoder.h"
#include "text/model.h"

namespace halfstep {

/// A model, with the tokens that text is cut at before the model sees it.
class Tokenizer::Impl {
 public:
  struct Added {
    std::string text;
    std::uint32_t id = 0;
    bool special = true;      ///< decode() leaves it out
    bool takes_left = false;  ///< the spaces before it
    bool takes_right = false;
    bool later = false;  ///< looked for in what the others leave of a text: "normalized" in files
  };
  /// A token that a model's input has, or one of the texts.
  struct TemplatePart {
    enum class Kind : std::uint8_t { token, first, second } kind = Kind::token;
    std::uint32_t token = 0;
    std::uint32_t segment = 0;

    friend bool operator==(const TemplatePart&, const TemplatePart&) = default;
  };
  using Template = std::vector<TemplatePart>;
  /// [CLS] first [SEP] and [CLS] first [SEP] second [SEP].
  static Template bert_template(std::uint32_t cls, std::uint32_t sep, bool two);
  /// The texts alone.
  static Template plain_template(bool two);

  /// Added tokens have a text, and the id that the vocabulary has for it or one that is free in it.
  Impl(std::shared_ptr<const text::Model> model, text::Decoder decoder, std::vector<Added> added, Template one,
       Template two);

  std::uint32_t size() const { return size_; }
  std::optional<std::uint32_t> find(std::string_view token) const;
  std::string_view token(std::uint32_t id) const;
  std::vector<std::uint32_t> encode(std::string_view text) const;
  Encoding encode_for_model(std::string_view text, std::optional<std::string_view> second, std::int64_t longest) const;
  std::string decode(std::span<const std::uint32_t> tokens, bool with_special) const;
  /// Its tokenizer.json.
  nlohmann::ordered_json describe() const;

 private:
  const Added* added_of(std::uint32_t id) const;
  void encode(std::string_view text, bool later, std::vector<std::uint32_t>& tokens) const;

  std::shared_ptr<const text::Model> model_;
  text::Decoder decoder_;
  std::vector<Added> added_;  ///< in the order of their ids
  Template one_;
  Template two_;
  std::uint32_t size_;
};

namespace text {

/// BERT's special tokens.
inline constexpr const char* unknown_token = "[UNK]";
inline constexpr const char* class_token = "[CLS]";
inline constexpr const char* separator_token = "[SEP]";
inline constexpr const char* padding_token = "[PAD]";
inline constexpr const char* mask_token = "[MASK]";

/// A WordPiece tokenizer as BERT's, with more special tokens than its five. Throws Error, calling the vocabulary
/// `place`, if it lacks "[UNK]".
Tokenizer bert_tokenizer(Vocabulary vocabulary, const WordPieceOptions& options, std::string_view place,
                         const std::vector<std::string>& special = {});

}  // namespace text
}  // namespace halfstep
