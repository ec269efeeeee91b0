#include <halfstep/error.h>
#include <halfstep/text.h>

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "host/temporary_folder.h"

using namespace halfstep;
using namespace std::string_literals;

namespace {

std::filesystem::path written(const TemporaryFolder& folder, const std::string& text) {
  std::filesystem::path path = folder.path() / "vocab.txt";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

const std::string vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nhello\n,\n!\ncafe\n\u4e2d\n##s\nh\n##e\n##llo\nUn\n";

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> result;
  for (const std::uint32_t id : tokenizer.encode(text)) result.push_back(tokenizer.token(id));
  return result;
}

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("WordPiece takes the longest pieces from left to right") {
  TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::word_piece(written(folder, vocabulary));
  CHECK(tokenizer.size() == 18);
  CHECK(pieces(tokenizer, "unaffable") == Pieces{"un", "##aff", "##able"});
  CHECK(pieces(tokenizer, "  HELLO,hellos!\n") == Pieces{"hello", ",", "hello", "##s", "!"});
  CHECK(pieces(tokenizer, "unaffabl hello") == Pieces{"[UNK]", "hello"});
  CHECK(pieces(tokenizer, "Caf\u00e9 cafe\u0301 \u4e2dcafe") == Pieces{"cafe", "cafe", "\u4e2d", "cafe"});
  CHECK(pieces(tokenizer, "he\u00adl\0lo \u200bun\xff"s) == Pieces{"hello", "un"});
  CHECK(pieces(tokenizer, "").empty());
  CHECK(pieces(tokenizer, " \t\u3000").empty());
  CHECK(pieces(tokenizer, "un" + std::string(97, 's')).size() == 98);
  CHECK(pieces(tokenizer, "un" + std::string(99, 's')) == Pieces{"[UNK]"});  // more than 100 characters
  CHECK(pieces(tokenizer, std::string(100000, 'x')) == Pieces{"[UNK]"});
}

TEST_CASE("a cased vocabulary keeps case and accents") {
  TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::word_piece(written(folder, vocabulary), {.lower_case = false});
  CHECK(pieces(tokenizer, "Un un UN Caf\u00e9") == Pieces{"Un", "un", "[UNK]", "[UNK]"});
}

TEST_CASE("special tokens that a text names are found, and a model's input has them around texts") {
  TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::word_piece(written(folder, vocabulary));
  CHECK(pieces(tokenizer, "hello[MASK]hello [mask]") == Pieces{"hello", "[MASK]", "hello", "[UNK]", "[UNK]", "[UNK]"});
  const Encoding one = tokenizer.encode_for_model("hello!");
  CHECK(one.tokens == std::vector<std::uint32_t>{2, 8, 10, 3});
  CHECK(one.segments == std::vector<std::uint32_t>{0, 0, 0, 0});
  const Encoding two = tokenizer.encode_for_model("hello", "un!");
  CHECK(two.tokens == std::vector<std::uint32_t>{2, 8, 3, 5, 10, 3});
  CHECK(two.segments == std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1});
  CHECK(tokenizer.encode_for_model("hello hello hello", {}, 4).tokens == std::vector<std::uint32_t>{2, 8, 8, 3});
  CHECK(tokenizer.encode_for_model("hello", {}, 2).tokens == std::vector<std::uint32_t>{2, 3});
  CHECK(tokenizer.encode_for_model("hello hello hello hello", "un un", 6).tokens ==
        std::vector<std::uint32_t>{2, 8, 8, 3, 5, 3});
  CHECK_THROWS_WITH_AS(tokenizer.encode_for_model("hello", {}, 1), doctest::Contains("at least 2 tokens, got 1"),
                       Error);
  CHECK(tokenizer.decode(two.tokens) == "hello un!");
  CHECK(tokenizer.decode(one.tokens, true) == "[CLS] hello! [SEP]");
  CHECK_THROWS_WITH_AS(tokenizer.decode(std::vector<std::uint32_t>{18}), "[tokenizer] expected ids below 18, got 18",
                       Error);
}

TEST_CASE("a vocabulary that cannot be used is named") {
  TemporaryFolder folder;
  const auto message = [&](const std::string& text) -> std::string {
    try {
      Tokenizer::word_piece(written(folder, text));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      return error.what();
    }
    return "";
  };
  CHECK(message("[PAD]\nhello\n").find("vocab.txt: expected the token '[UNK]' in it, got none") != std::string::npos);
  CHECK(message("[UNK]\na\nb\na\n").find("vocab.txt: line 4 repeats 'a' of line 2") != std::string::npos);
  CHECK(message("[UNK]\n\na\n").find("vocab.txt: line 2 is empty") != std::string::npos);
  CHECK(message("").find("vocab.txt: expected a token a line, got none") != std::string::npos);
  CHECK(message("[UNK]\na\ncaf\xe9\n").find("vocab.txt: expected UTF-8, got another byte in line 3") !=
        std::string::npos);
  CHECK(message("[UNK]\n\xff\n\xfe\n").find("in line 2") != std::string::npos);
  CHECK(message("[UNK]\r\na\r\n").empty());
  CHECK(message("\xEF\xBB\xBF[UNK]\na\n").empty());  // a byte order mark is no part of the first token
  CHECK_THROWS_WITH_AS(Tokenizer::word_piece(folder.path() / "none.txt"), doctest::Contains("none.txt"), Error);
}
