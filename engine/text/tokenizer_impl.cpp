#include "text/tokenizer_impl.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "text/unicode.h"

namespace halfstep {
namespace {

using Kind = Tokenizer::Impl::TemplatePart::Kind;
using nlohmann::ordered_json;

/// Cuts two texts to `room` tokens together, as transformers does: the longer one first, then both alike.
void truncate(std::vector<std::uint32_t>& first, std::vector<std::uint32_t>& second, std::size_t room) {
  if (first.size() + second.size() <= room) return;
  std::size_t shorter = std::min(first.size(), second.size());
  std::size_t longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  const bool second_is_longer = second.size() >= first.size();
  first.resize(std::min(first.size(), second_is_longer ? shorter : longer));
  second.resize(std::min(second.size(), second_is_longer ? longer : shorter));
}

/// The end of the space characters that `text` begins with, and the beginning of those that it ends in.
std::size_t end_of_spaces(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    std::string_view rest = text.substr(end);
    if (!text::is_space(text::take_character(rest))) break;
    end = text.size() - rest.size();
  }
  return end;
}
std::size_t begin_of_spaces(std::string_view text) {
  std::u32string characters = text::decode_utf8(text);
  std::size_t begin = text.size();
  while (!characters.empty() && text::is_space(characters.back())) {
    begin -= text::encode_utf8({&characters.back(), 1}).size();
    characters.pop_back();
  }
  return begin;
}

/// Looks for added tokens, those of one pass, in a text from the front.
class AddedSearch {
 public:
  using Added = Tokenizer::Impl::Added;
  struct Found {
    std::string_view before;  ///< between the token found last and this one
    const Added* token;       ///< null: there is none before the text's end
  };

  AddedSearch(const std::vector<Added>& added, bool later, std::string_view text) : added_(added), text_(text) {
    for (const Added& token : added) {
      places_.push_back(token.later == later ? text.find(token.text) : std::string_view::npos);
    }
  }

  /// The next added token, the longest of those that begin there.
  Found next() {
    std::size_t begin = text_.size();
    const Added* token = nullptr;
    for (std::size_t i = 0; i < added_.size(); ++i) {
      if (places_[i] < searched_) places_[i] = text_.find(added_[i].text, searched_);
      const bool longer = places_[i] == begin && token != nullptr && added_[i].text.size() > token->text.size();
      if (places_[i] >= begin && !longer) continue;
      begin = places_[i];
      token = &added_[i];
    }
    if (token == nullptr) return {text_.substr(taken_), nullptr};
    // As in transformers, spaces that a token takes after itself may begin the next one.
    searched_ = begin + token->text.size();
    std::string_view before = text_.substr(taken_, std::max(begin, taken_) - taken_);
    if (token->takes_left) before = before.substr(0, begin_of_spaces(before));
    taken_ = searched_;
    if (token->takes_right) taken_ += end_of_spaces(text_.substr(taken_));
    return {before, token};
  }

 private:
  const std::vector<Added>& added_;
  std::string_view text_;
  std::vector<std::size_t> places_;  ///< of each from the last search on
  std::size_t searched_ = 0;         ///< the end of the last token's own text
  std::size_t taken_ = 0;            ///< the end of what it took
};

}  // namespace

Tokenizer::Impl::Template Tokenizer::Impl::bert_template(std::uint32_t cls, std::uint32_t sep, bool two) {
  Template parts{{Kind::token, cls, 0}, {Kind::first, 0, 0}, {Kind::token, sep, 0}};
  if (two) {
    parts.push_back({Kind::second, 0, 1});
    parts.push_back({Kind::token, sep, 1});
  }
  return parts;
}

Tokenizer::Impl::Template Tokenizer::Impl::plain_template(bool two) {
  Template parts{{Kind::first, 0, 0}};
  if (two) parts.push_back({Kind::second, 0, 1});
  return parts;
}

Tokenizer::Impl::Impl(std::shared_ptr<const text::Model> model, text::Decoder decoder, std::vector<Added> added,
                      Template one, Template two)
    : model_(std::move(model)),
      decoder_(std::move(decoder)),
      added_(std::move(added)),
      one_(std::move(one)),
      two_(std::move(two)),
      size_(model_->vocabulary().size()) {
  std::ranges::sort(added_, {}, &Added::id);
  if (!added_.empty()) size_ = std::max(size_, added_.back().id + 1);
}

const Tokenizer::Impl::Added* Tokenizer::Impl::added_of(std::uint32_t id) const {
  const auto found = std::ranges::lower_bound(added_, id, {}, &Added::id);
  return found != added_.end() && found->id == id ? &*found : nullptr;
}

std::optional<std::uint32_t> Tokenizer::Impl::find(std::string_view token) const {
  const auto added = std::ranges::find(added_, token, &Added::text);
  return added != added_.end() ? std::optional(added->id) : model_->vocabulary().find(token);
}

std::string_view Tokenizer::Impl::token(std::uint32_t id) const {
  if (id >= size_) fail("tokenizer", fmt::format("expected ids below {}, got {}", size_, id));
  if (const Added* added = added_of(id)) return added->text;
  return id < model_->vocabulary().size() ? std::string_view(model_->vocabulary().token(id)) : std::string_view();
}

std::vector<std::uint32_t> Tokenizer::Impl::encode(std::string_view text) const {
  std::vector<std::uint32_t> tokens;
  encode(text, false, tokens);
  return tokens;
}

void Tokenizer::Impl::encode(std::string_view text, bool later, std::vector<std::uint32_t>& tokens) const {
  AddedSearch search(added_, later, text);
  for (;;) {
    const auto found = search.next();
    if (later) {
      model_->encode(found.before, tokens);
    } else {
      encode(found.before, true, tokens);
    }
    if (found.token == nullptr) return;
    tokens.push_back(found.token->id);
  }
}

Encoding Tokenizer::Impl::encode_for_model(std::string_view text, std::optional<std::string_view> second,
                                           std::int64_t longest) const {
  const Template& parts = second ? two_ : one_;
  const auto special = static_cast<std::size_t>(std::ranges::count(parts, Kind::token, &TemplatePart::kind));
  if (longest < 0 || (longest > 0 && static_cast<std::size_t>(longest) < special)) {
    fail("tokenizer",
         fmt::format("expected a longest sequence of 0 (no limit) or at least {} tokens, got {}", special, longest));
  }
  std::vector<std::uint32_t> a = encode(text);
  std::vector<std::uint32_t> b = second ? encode(*second) : std::vector<std::uint32_t>{};
  if (longest > 0 && !second) a.resize(std::min(a.size(), static_cast<std::size_t>(longest) - special));
  if (longest > 0 && second) truncate(a, b, static_cast<std::size_t>(longest) - special);
  Encoding result;
  for (const TemplatePart& part : parts) {
    if (part.kind == Kind::token) result.tokens.push_back(part.token);
    if (part.kind == Kind::first) result.tokens.insert(result.tokens.end(), a.begin(), a.end());
    if (part.kind == Kind::second) result.tokens.insert(result.tokens.end(), b.begin(), b.end());
    result.segments.resize(result.tokens.size(), part.segment);
  }
  return result;
}

std::string Tokenizer::Impl::decode(std::span<const std::uint32_t> tokens, bool with_special) const {
  std::vector<std::string_view> texts;
  for (const std::uint32_t id : tokens) {
    const std::string_view text = token(id);
    if (text.empty()) continue;  // no token has the id
    const Added* added = added_of(id);
    if (added == nullptr || !added->special || with_special) texts.push_back(text);
  }
  return decoder_.decode(texts);
}

ordered_json Tokenizer::Impl::describe() const {
  ordered_json file{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  file["added_tokens"] = ordered_json::array();
  for (const Added& token : added_) {
    file["added_tokens"].push_back({{"id", token.id},
                                    {"content", token.text},
                                    {"single_word", false},
                                    {"lstrip", token.takes_left},
                                    {"rstrip", token.takes_right},
                                    {"normalized", token.later},
                                    {"special", token.special}});
  }
  file["post_processor"] = nullptr;
  file["decoder"] = decoder_.describe();
  model_->describe(file);
  ordered_json special = ordered_json::object();
  const auto template_json = [&](const Template& parts) {
    ordered_json list = ordered_json::array();
    for (const TemplatePart& part : parts) {
      if (part.kind != Kind::token) {
        list.push_back({{"Sequence", {{"id", part.kind == Kind::first ? "A" : "B"}, {"type_id", part.segment}}}});
        continue;
      }
      const std::string name(token(part.token));
      list.push_back({{"SpecialToken", {{"id", name}, {"type_id", part.segment}}}});
      special[name] = {{"id", name}, {"ids", {part.token}}, {"tokens", {name}}};
    }
    return list;
  };
  const ordered_json single = template_json(one_);
  const ordered_json pair = template_json(two_);
  if (one_ != plain_template(false) || two_ != plain_template(true)) {
    file["post_processor"] = {
        {"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
  }
  ordered_json vocabulary = ordered_json::object();
  // Appended as to a vector: assigning to a key would look through all others first.
  auto& entries = vocabulary.get_ref<ordered_json::object_t&>();
  for (std::uint32_t id = 0; id < model_->vocabulary().size(); ++id) {
    const std::string& text = model_->vocabulary().token(id);
    if (!text.empty()) entries.emplace_back(text, id);
  }
  file["model"]["vocab"] = std::move(vocabulary);
  return file;
}

}  // namespace halfstep
