#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace halfstep::text {

/// How tokens become text.
struct Decoder {
  enum class Kind : std::uint8_t {
    spaces,       ///< with a space between each two, as where a tokenizer.json has no decoder
    fused,        ///< one after another
    word_pieces,  ///< with a space before each that does not continue a word
    bytes,        ///< characters are bytes, as GPT-2 has them
  } kind = Kind::spaces;
  std::string prefix = "##";  ///< of pieces that continue a word
  bool clean = true;          ///< undoes the spaces that splitting words at punctuation made

  /// The text of tokens, as valid UTF-8.
  std::string decode(std::span<const std::string_view> tokens) const;
  /// Its member of a tokenizer.json.
  nlohmann::ordered_json describe() const;
};

}  // namespace halfstep::text
