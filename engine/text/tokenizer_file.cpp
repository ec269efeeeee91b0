#include <halfstep/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

#include "text/byte_pairs.h"
#include "text/tokenizer_impl.h"
#include "text/word_piece.h"

namespace halfstep {
namespace {

namespace fs = std::filesystem;

using Impl = Tokenizer::Impl;
using Kind = Impl::TemplatePart::Kind;
using nlohmann::json;

/// Reads a tokenizer.json. Whatever it asks for is either done or refused.
class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path) {}

  Tokenizer read() {
    try {
      file_ = text::parse_json(text::read_text(path_), path_.string());
      expect(file_, "version", "1.0");
      const std::string kind = file_.at("model").value("type", file_.at("model").contains("merges") ? "BPE" : "");
      std::shared_ptr<const text::Model> model;
      if (kind == "WordPiece") {
        model = word_piece();
      } else if (kind == "BPE") {
        model = byte_pairs();
      } else {
        refuse("models of WordPiece and BPE", kind);
      }
      std::vector<Impl::Added> added = added_tokens(model->vocabulary());
      const auto [one, two] = templates();
      auto impl = std::make_shared<const Impl>(std::move(model), decoder(), std::move(added), one, two);
      for (const Impl::Template* parts : {&one, &two}) check_ids(*parts, impl->size());
      return Tokenizer(std::move(impl));
    } catch (const json::exception& error) {
      fail(ErrorCode::bad_file, "tokenizer",
           fmt::format("{}: expected a tokenizer.json, got: {}", path_.string(), error.what()));
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    fail(ErrorCode::bad_file, "tokenizer", fmt::format("{}: expected {}, got '{}'", path_.string(), expected, got));
  }

  /// The type of a member that may be null or absent, which gives "".
  std::string type_of(const char* member) const {
    const auto found = file_.find(member);
    return found == file_.end() || found->is_null() ? "" : found->at("type").get<std::string>();
  }

  /// Refuses a member of `from` that is not what its absence means.
  template <typename Value>
  void expect(const json& from, const char* member, const Value& wanted) const {
    const auto found = from.find(member);
    if (found == from.end() || found->is_null() || *found == json(wanted)) return;
    refuse(fmt::format("{} to be {}", member, json(wanted).dump()), found->dump());
  }

  static std::string text_or(const json& from, const char* member, const char* otherwise) {
    const auto found = from.find(member);
    return found == from.end() || found->is_null() ? otherwise : found->get<std::string>();
  }

  std::uint32_t id_of(const json& number) const { return text::id_of(number, path_.string()); }

  text::Vocabulary vocabulary() const { return text::vocabulary_of(file_.at("model").at("vocab"), path_.string()); }

  std::int64_t longest_word() const {
    const auto found = file_.at("model").find("max_input_chars_per_word");
    if (found == file_.at("model").end()) return 100;
    if (!found->is_number_unsigned()) refuse("max_input_chars_per_word to be a number of characters", found->dump());
    return static_cast<std::int64_t>(std::min(found->get<std::uint64_t>(), std::uint64_t{text::Vocabulary::most}));
  }

  std::shared_ptr<const text::Model> word_piece() const {
    const json& model = file_.at("model");
    text::WordPieceRules rules{.clean = false,
                               .split_chinese = false,
                               .lower_case = false,
                               .strip_accents = false,
                               .unknown = text_or(model, "unk_token", "[UNK]"),
                               .prefix = text_or(model, "continuing_subword_prefix", "##"),
                               .longest_word = longest_word()};
    const std::string normalizer = type_of("normalizer");
    if (normalizer == "BertNormalizer") {
      const json& from = file_.at("normalizer");
      rules.clean = from.value("clean_text", true);
      rules.split_chinese = from.value("handle_chinese_chars", true);
      rules.lower_case = from.value("lowercase", true);
      const auto strip = from.find("strip_accents");
      rules.strip_accents = strip == from.end() || strip->is_null() ? rules.lower_case : strip->get<bool>();
    } else if (!normalizer.empty()) {
      refuse("a BertNormalizer", normalizer);
    }
    if (type_of("pre_tokenizer") != "BertPreTokenizer") refuse("a BertPreTokenizer", type_of("pre_tokenizer"));
    return text::word_piece(vocabulary(), std::move(rules), path_.string());
  }

  std::vector<text::Merge> merges() const {
    std::vector<text::Merge> result;
    for (const json& merge : file_.at("model").at("merges")) {
      if (merge.is_array()) {
        if (merge.size() != 2) refuse("merges of two tokens", merge.dump());
        result.emplace_back(merge.at(0).get<std::string>(), merge.at(1).get<std::string>());
        continue;
      }
      const auto line = merge.get<std::string>();
      const std::size_t space = line.find(' ');
      if (space == std::string::npos) refuse("merges of two tokens", line);
      result.emplace_back(line.substr(0, space), line.substr(space + 1));
    }
    return result;
  }

  std::shared_ptr<const text::Model> byte_pairs() const {
    const json& model = file_.at("model");
    expect(model, "dropout", 0.0);
    expect(model, "continuing_subword_prefix", "");
    expect(model, "end_of_word_suffix", "");
    expect(model, "fuse_unk", false);
    expect(model, "byte_fallback", false);
    if (!type_of("normalizer").empty()) refuse("no normalizer with BPE", type_of("normalizer"));
    text::BytePairRules rules{.bytes = false, .split = false, .unknown = text_or(model, "unk_token", "")};
    rules.whole_words = model.value("ignore_merges", false);
    const std::string splitter = type_of("pre_tokenizer");
    if (splitter == "ByteLevel") {
      rules.bytes = true;
      rules.split = file_.at("pre_tokenizer").value("use_regex", true);
      rules.space_first = file_.at("pre_tokenizer").value("add_prefix_space", true);
    } else if (!splitter.empty()) {
      refuse("a pre_tokenizer ByteLevel or none", splitter);
    }
    return text::byte_pairs(vocabulary(), merges(), std::move(rules), path_.string());
  }

  text::Decoder decoder() const {
    using DecoderKind = text::Decoder::Kind;
    const std::string kind = type_of("decoder");
    if (kind.empty()) return {.kind = DecoderKind::spaces};
    if (kind == "Fuse") return {.kind = DecoderKind::fused};
    if (kind == "ByteLevel") return {.kind = DecoderKind::bytes};
    if (kind != "WordPiece") refuse("a decoder WordPiece, ByteLevel, Fuse or none", kind);
    const json& from = file_.at("decoder");
    return {.kind = DecoderKind::word_pieces,
            .prefix = text_or(from, "prefix", "##"),
            .clean = from.value("cleanup", true)};
  }

  /// Refuses an added token that transformers would give another id than the file does: a new one has `next`.
  void check_added(const Impl::Added& token, const text::Vocabulary& vocabulary, std::uint32_t next) const {
    if (token.text.empty()) refuse("added tokens with a text", token.text);
    const std::uint32_t wanted = vocabulary.find(token.text).value_or(next);
    const std::string got = fmt::format("{}", token.id);
    if (token.id != wanted) refuse(fmt::format("the id {} for the added token '{}'", wanted, token.text), got);
    if (wanted >= vocabulary.size()) return;
    const std::string& there = vocabulary.token(wanted);
    if (!there.empty() && there != token.text) {
      refuse(fmt::format("an id for the added token '{}' that '{}' has not", token.text, there), got);
    }
  }

  std::vector<Impl::Added> added_tokens(const text::Vocabulary& vocabulary) const {
    std::vector<Impl::Added> result;
    std::uint32_t next = vocabulary.count();
    const bool normalises = !type_of("normalizer").empty();
    for (const json& token : file_.value("added_tokens", json::array())) {
      expect(token, "single_word", false);
      if (normalises) expect(token, "normalized", false);
      result.push_back({.text = token.at("content").get<std::string>(),
                        .id = id_of(token.at("id")),
                        .special = token.value("special", false),
                        .takes_left = token.value("lstrip", false),
                        .takes_right = token.value("rstrip", false),
                        .later = token.value("normalized", false)});
      check_added(result.back(), vocabulary, next);
      if (!vocabulary.find(result.back().text)) ++next;
    }
    return result;
  }

  void check_ids(const Impl::Template& parts, std::uint32_t size) const {
    for (const Impl::TemplatePart& part : parts) {
      if (part.kind != Kind::token || part.token < size) continue;
      refuse(fmt::format("ids below {} around texts", size), fmt::format("{}", part.token));
    }
  }

  Impl::Template template_of(const json& parts, const json& special) const {
    Impl::Template result;
    for (const json& part : parts) {
      const bool text = part.contains("Sequence");
      const json& inner = part.at(text ? "Sequence" : "SpecialToken");
      const auto segment = inner.contains("type_id") ? id_of(inner.at("type_id")) : 0;
      const auto id = inner.at("id").get<std::string>();
      if (text && id != "A" && id != "B") refuse("the texts A and B around special tokens", id);
      if (text) {
        result.push_back({id == "A" ? Kind::first : Kind::second, 0, segment});
        continue;
      }
      for (const json& token : special.at(id).at("ids")) {
        result.push_back({Kind::token, id_of(token), segment});
      }
    }
    return result;
  }

  /// What surrounds a text, or two: each of them is there once.
  Impl::Template template_of(const char* member, std::ptrdiff_t texts) const {
    const json& from = file_.at("post_processor");
    Impl::Template result = template_of(from.at(member), from.at("special_tokens"));
    const bool once = std::ranges::count(result, Kind::first, &Impl::TemplatePart::kind) == 1;
    if (once && std::ranges::count(result, Kind::second, &Impl::TemplatePart::kind) == texts - 1) return result;
    refuse(fmt::format("{} text{} in the post_processor's '{}', each once", texts, texts == 1 ? "" : "s", member),
           from.at(member).dump());
  }

  std::pair<Impl::Template, Impl::Template> templates() const {
    const std::string kind = type_of("post_processor");
    if (kind.empty() || kind == "ByteLevel") return {Impl::plain_template(false), Impl::plain_template(true)};
    const json& from = file_.at("post_processor");
    if (kind == "TemplateProcessing") return {template_of("single", 1), template_of("pair", 2)};
    if (kind != "BertProcessing") refuse("a post_processor TemplateProcessing, BertProcessing or ByteLevel", kind);
    const auto cls = id_of(from.at("cls").at(1));
    const auto sep = id_of(from.at("sep").at(1));
    return {Impl::bert_template(cls, sep, false), Impl::bert_template(cls, sep, true)};
  }

  fs::path path_;
  json file_;
};

}  // namespace

Tokenizer Tokenizer::load(const fs::path& file) {
  std::error_code error;  // is that of opening it, which is told there
  return Reader(fs::is_directory(file, error) ? file / "tokenizer.json" : file).read();
}

}  // namespace halfstep
