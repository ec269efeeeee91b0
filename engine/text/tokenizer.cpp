#include <halfstep/error.h>
#include <halfstep/process.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>

#include "text/byte_pairs.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"
#include "text/word_piece.h"

namespace halfstep {

namespace fs = std::filesystem;

namespace text {

Tokenizer bert_tokenizer(Vocabulary vocabulary, const WordPieceOptions& options, std::string_view place,
                         const std::vector<std::string>& special) {
  using Impl = Tokenizer::Impl;
  std::vector<std::string> tokens{padding_token, unknown_token, class_token, separator_token, mask_token};
  tokens.insert(tokens.end(), special.begin(), special.end());
  std::vector<Impl::Added> added;
  for (const std::string& token : tokens) {
    if (const auto id = vocabulary.find(token)) added.push_back({.text = token, .id = *id});
  }
  const auto cls = vocabulary.find(class_token);
  const auto sep = vocabulary.find(separator_token);
  const bool framed = cls && sep;
  Impl::Template one = framed ? Impl::bert_template(*cls, *sep, false) : Impl::plain_template(false);
  Impl::Template two = framed ? Impl::bert_template(*cls, *sep, true) : Impl::plain_template(true);
  const WordPieceRules rules{.lower_case = options.lower_case,
                             .strip_accents = options.strip_accents.value_or(options.lower_case)};
  return Tokenizer(std::make_shared<Impl>(word_piece(std::move(vocabulary), rules, place),
                                          Decoder{.kind = Decoder::Kind::word_pieces, .prefix = rules.prefix},
                                          std::move(added), std::move(one), std::move(two)));
}

namespace {

/// Without special tokens around texts.
Tokenizer plain_tokenizer(std::shared_ptr<const Model> model, Decoder::Kind decoder,
                          std::vector<Tokenizer::Impl::Added> added = {}) {
  using Impl = Tokenizer::Impl;
  return Tokenizer(std::make_shared<Impl>(std::move(model), Decoder{.kind = decoder}, std::move(added),
                                          Impl::plain_template(false), Impl::plain_template(true)));
}

std::vector<Merge> read_merges(const fs::path& file) {
  std::vector<Merge> merges;
  const std::string text = read_text(file);
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      fail(ErrorCode::bad_file, "merges",
           fmt::format("{}: expected two tokens in line {}, got '{}'", file.string(), number, line));
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

Vocabulary read_json_vocabulary(const fs::path& file) {
  try {
    return vocabulary_of(parse_json(read_text(file), file.string()), file.string());
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::bad_file, "vocabulary", fmt::format("{}: expected an object of tokens and ids", file.string()));
  }
}

void write_text(const fs::path& file, const std::string& text) {
  const std::array parts{std::as_bytes(std::span(text))};
  write_atomically(file, parts);
}

}  // namespace
}  // namespace text

Tokenizer Tokenizer::word_piece(const fs::path& vocabulary, const WordPieceOptions& options) {
  return text::bert_tokenizer(text::read_vocabulary(vocabulary), options, vocabulary.string());
}

Tokenizer Tokenizer::byte_pairs(const fs::path& vocabulary, const fs::path& merges) {
  text::Vocabulary tokens = text::read_json_vocabulary(vocabulary);
  std::vector<Impl::Added> added;
  constexpr const char* end_of_text = "<|endoftext|>";
  if (const auto id = tokens.find(end_of_text)) added.push_back({.text = end_of_text, .id = *id});
  return text::plain_tokenizer(
      text::byte_pairs(std::move(tokens), text::read_merges(merges), {}, vocabulary.string() + ", " + merges.string()),
      text::Decoder::Kind::bytes, std::move(added));
}

Tokenizer Tokenizer::bytes() {
  text::Vocabulary vocabulary;
  for (unsigned byte = 0; byte < 256; ++byte) vocabulary.add(text::symbol_of(static_cast<std::uint8_t>(byte)));
  return text::plain_tokenizer(text::byte_pairs(std::move(vocabulary), {}, {.split = false}, "bytes"),
                               text::Decoder::Kind::bytes);
}

Tokenizer Tokenizer::characters(std::string_view text) {
  const std::u32string all = text::decode_utf8(text);
  text::Vocabulary vocabulary;
  for (const char32_t c : std::set<char32_t>(all.begin(), all.end())) vocabulary.add(text::encode_utf8({&c, 1}));
  return text::plain_tokenizer(
      text::byte_pairs(std::move(vocabulary), {}, {.bytes = false, .split = false}, "characters"),
      text::Decoder::Kind::fused);
}

std::uint32_t Tokenizer::size() const {
  return impl_->size();
}

std::optional<std::uint32_t> Tokenizer::find(std::string_view token) const {
  return impl_->find(token);
}

std::string Tokenizer::token(std::uint32_t id) const {
  return std::string(impl_->token(id));
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text) const {
  return impl_->encode(text);
}

Encoding Tokenizer::encode_for_model(std::string_view text, std::optional<std::string_view> second,
                                     std::int64_t longest) const {
  return impl_->encode_for_model(text, second, longest);
}

std::string Tokenizer::decode(std::span<const std::uint32_t> tokens, bool with_special) const {
  return impl_->decode(tokens, with_special);
}

void Tokenizer::save(const fs::path& file) const {
  text::write_text(file, impl_->describe().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void Tokenizer::save_vocabulary(const fs::path& file) const {
  std::string text;
  for (std::uint32_t id = 0; id < size(); ++id) {
    const std::string_view token = impl_->token(id);
    if (token.empty() || token.find_first_of("\r\n") != std::string_view::npos) {
      fail("vocabulary", fmt::format("expected tokens that are lines of text, got another with id {}", id),
           "save() writes any");
    }
    text += std::string(token) + "\n";
  }
  text::write_text(file, text);
}

}  // namespace halfstep
