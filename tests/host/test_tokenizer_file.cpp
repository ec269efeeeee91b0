#include <halfstep/error.h>
#include <halfstep/text.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "host/temporary_folder.h"
#include "text/unicode.h"

using namespace halfstep;

namespace {

const std::vector<std::string> texts{"the cat sat on the mat", "The cats sat, and the cat ran!",
                                     "caf\u00e9s on the mat \u4e2d\u6587", "it's the cat's mat"};

const std::string sample = "The cat's caf\u00e9 [MASK]<|end|> mat\u4e2d ?!\n  q";

/// The tokenizer.json of a tokenizer, changed.
template <typename Change>
std::string message_of(const Tokenizer& tokenizer, const Change& change) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  tokenizer.save(path);
  nlohmann::ordered_json file = nlohmann::ordered_json::parse(std::ifstream(path));
  change(file);
  std::ofstream(path) << file.dump();
  try {
    Tokenizer::load(folder.path());
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every tokenizer is the same after it was saved and loaded") {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  for (const Tokenizer& tokenizer :
       {Tokenizer::bytes(), Tokenizer::characters(sample), Tokenizer::train_word_piece(texts, {.size = 80}),
        Tokenizer::train_word_piece(texts, {.size = 80}, {.lower_case = false, .strip_accents = true}),
        Tokenizer::train_byte_pairs(texts, {.size = 300, .special = {"<|end|>"}})}) {
    tokenizer.save(path);
    const Tokenizer loaded = Tokenizer::load(path);
    REQUIRE(loaded.size() == tokenizer.size());
    for (std::uint32_t id = 0; id < loaded.size(); ++id) CHECK(loaded.token(id) == tokenizer.token(id));
    const Encoding one = tokenizer.encode_for_model(sample, "mat");
    CHECK(loaded.encode_for_model(sample, "mat").tokens == one.tokens);
    CHECK(loaded.encode_for_model(sample, "mat").segments == one.segments);
    CHECK(loaded.decode(one.tokens) == tokenizer.decode(one.tokens));
    CHECK(loaded.decode(one.tokens, true) == tokenizer.decode(one.tokens, true));
  }
}

TEST_CASE("a vocabulary of 60,000 tokens is written and read") {
  std::u32string all;
  for (char32_t c = 1; c < 0xF000; ++c) {
    if (c < 0xD800 || c > 0xDFFF) all.push_back(c);
  }
  const Tokenizer tokenizer = Tokenizer::characters(text::encode_utf8(all));
  TemporaryFolder folder;
  tokenizer.save(folder.path() / "tokenizer.json");
  CHECK(Tokenizer::load(folder.path()).size() == all.size());
}

TEST_CASE("a tokenizer.json that asks for what is not known here is refused by name") {
  const Tokenizer pieces = Tokenizer::train_word_piece(texts, {.size = 80});
  const Tokenizer pairs = Tokenizer::train_byte_pairs(texts, {.size = 300, .special = {"<|end|>"}});
  const auto refused = [&](const Tokenizer& tokenizer, const char* text, const auto& change) {
    const std::string message = message_of(tokenizer, change);
    CAPTURE(message);
    CHECK(message.find(text) != std::string::npos);
    CHECK(message.find("tokenizer.json: expected ") != std::string::npos);
  };
  refused(pieces, "models of WordPiece and BPE, got 'Unigram'", [](auto& file) { file["model"]["type"] = "Unigram"; });
  refused(pieces, "a BertNormalizer, got 'NFC'", [](auto& file) { file["normalizer"] = {{"type", "NFC"}}; });
  refused(pieces, "a BertPreTokenizer, got 'Whitespace'", [](auto& file) {
    file["pre_tokenizer"] = {{"type", "Whitespace"}};
  });
  refused(pieces, "single_word to be false", [](auto& file) { file["added_tokens"][0]["single_word"] = true; });
  refused(pieces, "normalized to be false", [](auto& file) { file["added_tokens"][0]["normalized"] = true; });
  refused(pieces, "'[UNK]'", [](auto& file) { file["model"]["vocab"].erase("[UNK]"); });
  refused(pairs, "no normalizer with BPE, got 'NFC'", [](auto& file) { file["normalizer"] = {{"type", "NFC"}}; });
  refused(pairs, "dropout to be 0.0, got '0.1'", [](auto& file) { file["model"]["dropout"] = 0.1; });
  refused(pairs, "byte_fallback to be false", [](auto& file) { file["model"]["byte_fallback"] = true; });
  refused(pairs, "a pre_tokenizer ByteLevel or none, got 'Split'", [](auto& file) {
    file["pre_tokenizer"] = {{"type", "Split"}};
  });
  refused(pairs, "got 'Sequence'", [](auto& file) { file["post_processor"] = {{"type", "Sequence"}}; });
  refused(pairs, "a decoder WordPiece, ByteLevel, Fuse or none, got 'Metaspace'", [](auto& file) {
    file["decoder"] = {{"type", "Metaspace"}};
  });
  refused(pieces, "version to be \"1.0\", got '\"2.0\"'", [](auto& file) { file["version"] = "2.0"; });
  refused(pieces, "1 text in the post_processor's 'single', each once",
          [](auto& file) { file["post_processor"]["single"][1]["Sequence"]["id"] = "B"; });
  refused(pieces, "1 text in the post_processor's 'single', each once",
          [](auto& file) { file["post_processor"]["single"].erase(1); });
  refused(pieces, "2 texts in the post_processor's 'pair', each once",
          [](auto& file) { file["post_processor"]["pair"][3]["Sequence"]["id"] = "A"; });
  refused(pieces, "the texts A and B around special tokens, got 'C'",
          [](auto& file) { file["post_processor"]["single"][1]["Sequence"]["id"] = "C"; });
  refused(pieces, "expected ids from 0 to 16777215, got '-1'",
          [](auto& file) { file["post_processor"]["single"][1]["Sequence"]["type_id"] = -1; });
  for (const nlohmann::ordered_json& longest : {nlohmann::ordered_json(-1), nlohmann::ordered_json(1.5)}) {
    refused(pieces, "max_input_chars_per_word to be a number of characters",
            [&](auto& file) { file["model"]["max_input_chars_per_word"] = longest; });
  }
  refused(pairs, "merges of two tokens, got '[\"a\",\"b\",\"c\"]'", [](auto& file) {
    file["model"]["merges"].push_back({"a", "b", "c"});
  });
  refused(pairs, "a tokenizer.json, got:", [](auto& file) { file.erase("model"); });
  refused(pairs, "an object of tokens and ids, got '3'", [](auto& file) { file["model"]["vocab"] = 3; });
}

TEST_CASE("the decoder of a tokenizer.json says how tokens become text") {
  using Json = nlohmann::ordered_json;
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  Json file{{"pre_tokenizer", {{"type", "BertPreTokenizer"}}}};
  file["model"] = {{"type", "WordPiece"},
                   {"unk_token", "?"},
                   {"continuing_subword_prefix", "@"},
                   {"vocab", {{"?", 0}, {"Ġcat", 1}, {"##s", 2}, {"@s", 3}, {"!", 4}, {"it", 6}}}};
  const Json word_piece{{"type", "WordPiece"}, {"prefix", "##"}};
  const auto changed = [&](const char* member, const Json& value) {
    Json decoder = word_piece;
    decoder[member] = value;
    return decoder;
  };
  // As tokenizers 0.23 decodes the same ids, but for 5, which is no token's.
  const std::vector<std::pair<Json, std::string>> decoded{{nullptr, "it Ġcat ##s @s !"},
                                                          {Json{{"type", "Fuse"}}, "itĠcat##s@s!"},
                                                          {Json{{"type", "ByteLevel"}}, "it cat##s@s!"},
                                                          {word_piece, "it Ġcats @s!"},
                                                          {changed("cleanup", false), "it Ġcats @s !"},
                                                          {changed("prefix", "@"), "it Ġcat ##ss!"}};
  const std::vector<std::uint32_t> ids{5, 6, 1, 2, 3, 5, 4};
  for (const auto& [decoder, text] : decoded) {
    CAPTURE(decoder.dump());
    file["decoder"] = decoder;
    std::ofstream(path) << file.dump();
    const Tokenizer tokenizer = Tokenizer::load(path);
    CHECK(tokenizer.decode(ids) == text);
    tokenizer.save(path);
    CHECK(Tokenizer::load(path).decode(ids) == text);
  }
}

TEST_CASE("added tokens that are normalized are found in what the others leave") {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  const Tokenizer pieces = Tokenizer::train_word_piece(texts, {.size = 80});
  const Tokenizer pairs = Tokenizer::train_byte_pairs(texts, {.size = 300, .special = {"<|end|>"}});
  for (const bool normalized : {false, true}) {
    for (const Tokenizer& tokenizer : {pieces, pairs}) {
      tokenizer.save(path);
      nlohmann::ordered_json file = nlohmann::ordered_json::parse(std::ifstream(path));
      const auto first = file["added_tokens"][0]["content"].get<std::string>();
      nlohmann::ordered_json longer = file["added_tokens"][0];
      longer["id"] = tokenizer.size();
      longer["content"] = first + "s";
      longer["normalized"] = normalized;
      file["added_tokens"].push_back(longer);
      file["normalizer"] = nullptr;
      std::ofstream(path) << file.dump();
      const Tokenizer loaded = Tokenizer::load(path);
      std::vector<std::uint32_t> expected{*loaded.find("a"), tokenizer.size()};
      if (normalized) expected = {*loaded.find("a"), *loaded.find(first), *loaded.find("s")};
      CHECK(loaded.encode("a" + first + "s") == expected);
      loaded.save(path);
      CHECK(Tokenizer::load(path).encode("a" + first + "s") == expected);
    }
  }
}

TEST_CASE("the segments of texts without special tokens are saved") {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  Tokenizer::bytes().save(path);
  nlohmann::ordered_json file = nlohmann::ordered_json::parse(std::ifstream(path));
  const auto text = [](const char* id, int segment) {
    return nlohmann::ordered_json{{"Sequence", {{"id", id}, {"type_id", segment}}}};
  };
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", {text("A", 1)}},
                            {"pair", {text("A", 1), text("B", 0)}},
                            {"special_tokens", nlohmann::ordered_json::object()}};
  std::ofstream(path) << file.dump();
  Tokenizer::load(path).save(path);
  const Tokenizer saved = Tokenizer::load(path);
  CHECK(saved.encode_for_model("a").segments == std::vector<std::uint32_t>{1});
  CHECK(saved.encode_for_model("a", "b").segments == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("damaged parts of a tokenizer.json are refused") {
  const Tokenizer pieces = Tokenizer::train_word_piece(texts, {.size = 80});
  const auto refused_as = [&](const char* text, const auto& change) {
    const std::string message = message_of(pieces, change);
    CAPTURE(message);
    CHECK(message.find("tokenizer.json: expected " + std::string(text)) != std::string::npos);
  };
  refused_as("the id 0 for the added token '[PAD]', got '7'", [](auto& file) { file["added_tokens"][0]["id"] = 7; });
  refused_as("added tokens with a text, got ''", [](auto& file) { file["added_tokens"][0]["content"] = ""; });
  refused_as("ids below 38 around texts, got '4096'",
             [](auto& file) { file["post_processor"]["special_tokens"]["[CLS]"]["ids"] = {4096}; });
  // No id is taken for another: of too many bits, below zero, of another type.
  for (const nlohmann::ordered_json& id :
       {nlohmann::ordered_json(4294967296 + 1), nlohmann::ordered_json(-1), nlohmann::ordered_json(1.5),
        nlohmann::ordered_json(true), nlohmann::ordered_json("1"), nlohmann::ordered_json(1 << 24)}) {
    CAPTURE(id);
    const auto refused = [&](const auto& change) {
      const std::string message = message_of(pieces, change);
      CAPTURE(message);
      CHECK(message.find("tokenizer.json: expected ids from 0 to 16777215, got '") != std::string::npos);
      CHECK(message.find(id.dump()) != std::string::npos);
    };
    refused([&](auto& file) { file["model"]["vocab"]["mat"] = id; });
    refused([&](auto& file) { file["added_tokens"][0]["id"] = id; });
    refused([&](auto& file) { file["post_processor"]["special_tokens"]["[CLS]"]["ids"] = {id}; });
  }
  CHECK(message_of(pieces, [](auto& file) {
          file["model"]["vocab"]["mat"] = 0;
        }).find("tokenizer.json: expected every id once, got 0 for") != std::string::npos);
  TemporaryFolder folder;
  for (const char* text : {"", "{", "[]", "{\"model\": {\"type\": 3}}"}) {
    CAPTURE(text);
    std::ofstream(folder.path() / "tokenizer.json") << text;
    CHECK_THROWS_WITH_AS(Tokenizer::load(folder.path()), doctest::Contains("tokenizer.json: expected a tokenizer.json"),
                         Error);
  }
  std::ofstream(folder.path() / "tokenizer.json") << "{\n\"\xff\": 1}";
  CHECK_THROWS_WITH_AS(Tokenizer::load(folder.path()),
                       doctest::Contains("tokenizer.json: expected UTF-8, got another byte in line 2"), Error);
  CHECK_THROWS_WITH_AS(Tokenizer::load(folder.path() / "other.json"), doctest::Contains("other.json"), Error);
  // What is nested deeper than the stack could bear.
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  std::ofstream(folder.path() / "tokenizer.json") << deep;
  CHECK_THROWS_WITH_AS(Tokenizer::load(folder.path()),
                       doctest::Contains("tokenizer.json: expected JSON nested in at most 64 levels"), Error);
  std::ofstream(folder.path() / "tokenizer.json") << R"({"version": )" << deep << "}";
  CHECK_THROWS_WITH_AS(Tokenizer::load(folder.path()), doctest::Contains("64 levels"), Error);
  std::ofstream(folder.path() / "merges.txt");
  CHECK_THROWS_WITH_AS(Tokenizer::byte_pairs(folder.path() / "tokenizer.json", folder.path() / "merges.txt"),
                       doctest::Contains("64 levels"), Error);
}

TEST_CASE("a new added token has the id that transformers gives it") {
  const Tokenizer pairs = Tokenizer::train_byte_pairs(texts, {.size = 300});
  const std::uint32_t size = pairs.size();
  const auto message = [&](const std::vector<std::uint32_t>& ids) {
    return message_of(pairs, [&](auto& file) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        file["added_tokens"].push_back({{"content", "<" + std::to_string(i) + ">"}, {"id", ids[i]}});
      }
    });
  };
  const auto expected = [](std::uint32_t id, int token, std::uint32_t got) {
    return fmt::format("tokenizer.json: expected the id {} for the added token '<{}>', got '{}'", id, token, got);
  };
  CHECK(message({size, size + 1}).empty());
  CHECK(message({size + 10}).find(expected(size, 0, size + 10)) != std::string::npos);
  CHECK(message({size, size + 2}).find(expected(size + 1, 1, size + 2)) != std::string::npos);
  CHECK(message({size, size}).find(expected(size + 1, 1, size)) != std::string::npos);
  // transformers counts tokens, gaps not among them, so the id may be another token's.
  const Tokenizer pieces = Tokenizer::train_word_piece(texts, {.size = 80});
  const std::uint32_t last = pieces.size() - 1;
  const std::string taken = message_of(pieces, [&](auto& file) {
    file["model"]["vocab"].erase(pieces.token(last - 1));
    file["added_tokens"].push_back({{"content", "<0>"}, {"id", last}});
  });
  CHECK(taken.find("that '" + pieces.token(last) + "' has not, got '" + std::to_string(last)) != std::string::npos);
}

TEST_CASE("a tokenizer's file that cannot be opened is an Error that names it") {
  const TemporaryFolder folder;
  const std::filesystem::path loop = folder.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  for (const std::filesystem::path& file : {loop, folder.path() / std::string(300, 'a'), folder.path() / "none"}) {
    CAPTURE(file.string());
    try {
      Tokenizer::load(file);
      FAIL("expected an Error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      CHECK(std::string(error.what()).find(file.string()) != std::string::npos);
    }
  }
}

TEST_CASE("spaces that an added token takes after itself may begin the next one") {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  const Tokenizer pairs = Tokenizer::train_byte_pairs(texts, {.size = 300});
  const std::uint32_t size = pairs.size();
  pairs.save(path);
  nlohmann::ordered_json file = nlohmann::ordered_json::parse(std::ifstream(path));
  file["added_tokens"] = {{{"content", "foo"}, {"id", size}, {"rstrip", true}},
                          {{"content", " bar"}, {"id", size + 1}},
                          {{"content", "bar"}, {"id", size + 2}}};
  std::ofstream(path) << file.dump();
  const Tokenizer tokenizer = Tokenizer::load(path);
  const std::uint32_t a = *tokenizer.find("a");
  // As tokenizers 0.23 does.
  CHECK(tokenizer.encode("foo bar") == std::vector{size, size + 1});
  CHECK(tokenizer.encode("foo   bar bar") == std::vector{size, size + 1, size + 1});
  CHECK(tokenizer.encode("foobar") == std::vector{size, size + 2});
  CHECK(tokenizer.encode("foo  a bar") == std::vector{size, a, size + 1});
}
