#include "text/decoder.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "text/byte_pairs.h"
#include "text/unicode.h"

namespace halfstep::text {
namespace {

/// As transformers undoes the spaces that splitting at punctuation made.
std::string without_split_spaces(std::string text) {
  constexpr auto pairs = std::to_array<std::pair<std::string_view, std::string_view>>({{" .", "."},
                                                                                       {" ?", "?"},
                                                                                       {" !", "!"},
                                                                                       {" ,", ","},
                                                                                       {" ' ", "'"},
                                                                                       {" n't", "n't"},
                                                                                       {" 'm", "'m"},
                                                                                       {" do not", " don't"},
                                                                                       {" 's", "'s"},
                                                                                       {" 've", "'ve"},
                                                                                       {" 're", "'re"}});
  for (const auto& [from, to] : pairs) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

/// The bytes of a token. Added tokens consist of other characters too, which stand for themselves.
std::string bytes_of(std::string_view token) {
  static const std::unordered_map<char32_t, char> bytes = [] {
    std::unordered_map<char32_t, char> result;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string symbol = symbol_of(static_cast<std::uint8_t>(byte));
      std::string_view rest = symbol;
      result[take_character(rest)] = static_cast<char>(byte);
    }
    return result;
  }();
  std::string decoded;
  for (const char32_t c : decode_utf8(token)) {
    const auto byte = bytes.find(c);
    if (byte == bytes.end()) return std::string(token);
    decoded.push_back(byte->second);
  }
  return decoded;
}

std::string piece_of(std::string_view token, const Decoder& decoder, bool first) {
  std::string piece(token);
  if (!first) piece = token.starts_with(decoder.prefix) ? piece.substr(decoder.prefix.size()) : " " + piece;
  return decoder.clean ? without_split_spaces(std::move(piece)) : piece;
}

}  // namespace

std::string Decoder::decode(std::span<const std::string_view> tokens) const {
  std::string text;
  for (const std::string_view& token : tokens) {
    const bool first = &token == tokens.data();
    if (kind == Kind::spaces && !first) text += ' ';
    if (kind == Kind::bytes) {
      text += bytes_of(token);
    } else if (kind == Kind::word_pieces) {
      text += piece_of(token, *this, first);
    } else {
      text += token;
    }
  }
  return encode_utf8(decode_utf8(text));  // tokens of bytes may end within a character
}

nlohmann::ordered_json Decoder::describe() const {
  switch (kind) {
    case Kind::fused:
      return {{"type", "Fuse"}};
    case Kind::word_pieces:
      return {{"type", "WordPiece"}, {"prefix", prefix}, {"cleanup", clean}};
    case Kind::bytes:
      return {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
    case Kind::spaces:
      break;
  }
  return nullptr;
}

}  // namespace halfstep::text
