#include <halfstep/error.h>
#include <halfstep/text.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "host/temporary_folder.h"

using namespace halfstep;

namespace {

std::vector<std::string> tokens_of(const Tokenizer& tokenizer) {
  std::vector<std::string> tokens;
  for (std::uint32_t id = 0; id < tokenizer.size(); ++id) tokens.push_back(tokenizer.token(id));
  return tokens;
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> result;
  for (const std::uint32_t id : tokenizer.encode(text)) result.push_back(tokenizer.token(id));
  return result;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("a WordPiece vocabulary has special tokens, characters, and then the most frequent pairs") {
  const Strings texts{"abab ab", "ABC", "b"};
  const Tokenizer tokenizer = Tokenizer::train_word_piece(texts, {.size = 100, .least_count = 2});
  // Pairs: a ##b 3 times in all, ##b ##a and ##a ##b and ##b ##c once.
  CHECK(tokens_of(tokenizer) ==
        Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##a", "##b", "##c", "ab"});
  CHECK(pieces(tokenizer, "abab cab") == Strings{"ab", "##a", "##b", "c", "##a", "##b"});
  Strings reversed = texts;
  std::ranges::reverse(reversed);
  CHECK(tokens_of(Tokenizer::train_word_piece(reversed, {.size = 100, .least_count = 2})) == tokens_of(tokenizer));
}

TEST_CASE("pairs are merged by count, and of equal counts by their ids") {
  const Strings texts{"xy xy xy xyz pq pq pq"};
  CHECK(tokens_of(Tokenizer::train_byte_pairs(texts, {.size = 262})) == [] {
    Strings expected = tokens_of(Tokenizer::bytes());
    for (const char* token : {"xy", "\u0120p", "\u0120xy", "\u0120pq"}) expected.emplace_back(token);
    return expected;
  }());
}

TEST_CASE("repeated symbols merge from the left") {
  const Strings texts{"aaaaa", "aaaaa", "aaaaa"};
  const Tokenizer tokenizer = Tokenizer::train_byte_pairs(texts, {.size = 258});
  CHECK(tokenizer.token(256) == "aa");
  CHECK(tokenizer.token(257) == "aaa");  // of "aa" and "a", as often as "aa" and "aa"
  CHECK(pieces(tokenizer, "aaaaaaa") == Strings{"aa", "aa", "aaa"});
}

TEST_CASE("the size, the least count and the alphabet are limits") {
  const Strings texts{"one two three one two one", "eins zwei \u4e00\u4e01\u4e02"};
  for (const std::uint32_t size : {40U, 44U}) CHECK(Tokenizer::train_word_piece(texts, {.size = size}).size() <= size);
  const Tokenizer few = Tokenizer::train_word_piece(texts, {.size = 100, .least_count = 3});
  CHECK(few.find("one").has_value());
  CHECK_FALSE(few.find("two").has_value());
  const Tokenizer narrow = Tokenizer::train_word_piece(texts, {.size = 100, .characters = 3});
  CHECK(pieces(narrow, "one zwei") == Strings{"one", "[UNK]"});
  const Tokenizer special = Tokenizer::train_byte_pairs(texts, {.size = 300, .special = {"<a>", "<b>"}});
  CHECK(special.find("<b>") == 1U);
  CHECK(pieces(special, "one<b>") == Strings{"one", "<b>"});
  CHECK_THROWS_WITH_AS(Tokenizer::train_byte_pairs(texts, {.size = 255}),
                       doctest::Contains("expected a size from 256, which special tokens and bytes take"), Error);
  CHECK_THROWS_AS(Tokenizer::train_word_piece(texts, {.size = 20}), Error);
  const Tokenizer user = Tokenizer::train_word_piece(texts, {.size = 100, .special = {"[USER]"}});
  CHECK(pieces(user, "one[USER]") == Strings{"one", "[USER]"});
  for (const char* token : {"a", "", "\u0100", "[PAD]"}) {
    CAPTURE(token);
    CHECK_THROWS_WITH_AS(Tokenizer::train_word_piece(texts, {.size = 300, .special = {token}}),
                         doctest::Contains("special tokens that differ"), Error);
  }
  CHECK_THROWS_AS(Tokenizer::train_byte_pairs(texts, {.size = 300, .special = {"a"}}), Error);
  // Texts are decoded, so that it would never be found in one.
  CHECK_THROWS_WITH_AS(Tokenizer::train_byte_pairs(texts, {.size = 300, .special = {"<caf\xe9>"}}),
                       "[vocabulary] expected special tokens in UTF-8, got '<caf\\xe9>'", Error);
  CHECK_THROWS_WITH_AS(Tokenizer::train_word_piece(texts, {.size = 300, .special = {"<\xff>", "<\xfe>"}}),
                       doctest::Contains("in UTF-8"), Error);
}

TEST_CASE("a vocabulary that was learned is written and read") {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "vocab.txt";
  const Strings texts{"caf\u00e9 society", "Soci\u00e9t\u00e9 \u4e2d\u6587 society"};
  const Tokenizer learned = Tokenizer::train_word_piece(texts, {.size = 60, .special = {"[USER]"}});
  learned.save_vocabulary(path);
  CHECK(tokens_of(Tokenizer::word_piece(path)) == tokens_of(learned));
  CHECK(Tokenizer::train_word_piece({}, {.size = 5}).size() == 5);
  CHECK_THROWS_WITH_AS(Tokenizer::characters("a\nb").save_vocabulary(path), doctest::Contains("lines of text"), Error);
}
