#include <halfstep/error.h>
#include <halfstep/text.h>

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "host/temporary_folder.h"
#include "text/byte_pairs.h"
#include "text/unicode.h"

using namespace halfstep;
using namespace std::string_literals;

namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  const std::u32string characters = text::decode_utf8(text);
  for (const std::u32string_view word : text::words_of(characters)) result.push_back(text::encode_utf8(word));
  return result;
}

using Words = std::vector<std::string>;

/// Tokenizers of every byte and of merges.
struct Files {
  explicit Files(const std::string& merge_lines, const std::vector<std::string>& more) {
    std::ofstream vocabulary(folder.path() / "vocab.json");
    vocabulary << "{";
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string symbol = text::symbol_of(static_cast<std::uint8_t>(byte));
      vocabulary << (byte > 0 ? ", " : "") << '"' << (symbol == "\"" || symbol == "\\" ? "\\" : "") << symbol
                 << "\": " << byte;
    }
    for (std::size_t i = 0; i < more.size(); ++i) vocabulary << ", \"" << more[i] << "\": " << 256 + i;
    vocabulary << "}";
    std::ofstream(folder.path() / "merges.txt") << merge_lines;
  }
  Tokenizer read() const { return Tokenizer::byte_pairs(folder.path() / "vocab.json", folder.path() / "merges.txt"); }
  TemporaryFolder folder;
};

}  // namespace

TEST_CASE("text is split into words as GPT-2 splits it") {
  CHECK(words("Hello, it's 42 o'clock.") == Words{"Hello", ",", " it", "'s", " 42", " o", "'", "clock", "."});
  CHECK(words("a  b") == Words{"a", " ", " b"});
  CHECK(words("a\n\n b \n") == Words{"a", "\n\n", " b", " \n"});
  CHECK(words("  ") == Words{"  "});
  CHECK(words(" 'll") == Words{" '", "ll"});
  CHECK(words("''s") == Words{"''", "s"});
  CHECK(words("I'LL") == Words{"I", "'", "LL"});
  CHECK(words("\u00e9t\u00e9\u00a0\u0663\u00bd!?") == Words{"\u00e9t\u00e9", "\u00a0", "\u0663\u00bd", "!?"});
  CHECK(words("e\u0301") == Words{"e", "\u0301"});
  CHECK(words("").empty());
}

TEST_CASE("symbols are merged in the order of the merges") {
  const Files files("#version: 0.2\nl o\nlo w\ne r\n\u0120 low\n", {"lo", "low", "er", "\u0120low", "<|endoftext|>"});
  const Tokenizer tokenizer = files.read();
  CHECK(tokenizer.size() == 261);
  CHECK(tokenizer.encode("lower low") == std::vector<std::uint32_t>{257, 258, 259});
  CHECK(tokenizer.encode("lolow") == std::vector<std::uint32_t>{256, 257});
  CHECK(tokenizer.encode("low<|endoftext|>low") == std::vector<std::uint32_t>{257, 260, 257});
  CHECK(tokenizer.decode(std::vector<std::uint32_t>{257, 258, 259, 260}) == "lower low");
  const std::string hostile = "\0\x01 \u00e9\U0001f469\u200d\U0001f4bb\u05d0\u202e\n\t low"s;
  CHECK(tokenizer.decode(tokenizer.encode(hostile)) == hostile);
  CHECK(tokenizer.decode(tokenizer.encode("a\xff")) == "a\ufffd");
  CHECK(tokenizer.decode(std::vector<std::uint32_t>{0xF0, 'a'}) == "\ufffda");  // half a character
  const std::string longest(100000, 'l');
  CHECK(tokenizer.encode(longest).size() == longest.size());
  std::string merged;
  for (int i = 0; i < 30000; ++i) merged += "low";
  CHECK(tokenizer.encode(merged) == std::vector<std::uint32_t>(30000, 257));
}

TEST_CASE("of a merge that is there twice the later place counts, as in tokenizers 0.23") {
  const std::vector<std::string> made{"ab", "bc"};
  CHECK(Files("a b\nb c\n", made).read().encode("abc") == std::vector<std::uint32_t>{256, 'c'});
  CHECK(Files("a b\nb c\na b\n", made).read().encode("abc") == std::vector<std::uint32_t>{'a', 257});
}

TEST_CASE("merges that cannot be used are named") {
  const auto message = [](const std::string& merges, const std::vector<std::string>& more) -> std::string {
    try {
      Files(merges, more).read();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      return error.what();
    }
    return "";
  };
  CHECK(message("lo w\nl o\n", {"lo", "low"}).find("merge 1 of 'lo' and 'w' takes 'lo', which merge 2 makes") !=
        std::string::npos);
  CHECK(message("l o\nlo w\n", {"lo"}).find("expected the token 'low' in it, got none") != std::string::npos);
  CHECK(message("l o x\n", {"lo"}).find("merges.txt: expected two tokens in line 1, got 'l o x'") != std::string::npos);
  CHECK(message("l o\nl \xff\n", {"lo"}).find("merges.txt: expected UTF-8, got another byte in line 2") !=
        std::string::npos);
  CHECK(message("l\n", {}).find("expected two tokens in line 1") != std::string::npos);
  const Files files("", {});
  std::ofstream(files.folder.path() / "vocab.json") << "{\"a\": 0}";
  CHECK_THROWS_WITH_AS(files.read(), doctest::Contains("expected the token '\u0100' in it, got none"), Error);
  for (const char* damaged : {"", "[", "[1]", "{\"a\": \"b\"}", "{\"a\": -1}", "{\"a\": 1.5}", "{\"a\": 4294967295}",
                              "{\"a\": 4294967296}", "{\"a\": 0, \"b\": 0}"}) {
    std::ofstream(files.folder.path() / "vocab.json") << damaged;
    CAPTURE(damaged);
    CHECK_THROWS_WITH_AS(files.read(), doctest::Contains("vocab.json: expected "), Error);
  }
}

TEST_CASE("bytes and characters are tokens") {
  const Tokenizer bytes = Tokenizer::bytes();
  CHECK(bytes.size() == 256);
  CHECK(bytes.encode("a\u00e9\n") == std::vector<std::uint32_t>{'a', 0xC3, 0xA9, '\n'});
  CHECK(bytes.decode(std::vector<std::uint32_t>{'a', 0xC3, 0xA9}) == "a\u00e9");
  const Tokenizer characters = Tokenizer::characters("b\u00e9a\nb");
  CHECK(characters.size() == 4);
  CHECK(characters.encode("\nab\u00e9x") == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(characters.decode(std::vector<std::uint32_t>{3, 0}) == "\u00e9\n");
}
