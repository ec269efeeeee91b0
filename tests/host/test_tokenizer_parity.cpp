// Ids of Hugging Face's tokenizers: tests/reference/make_tokenizer_parity.py.
#include <halfstep/text.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "host/temporary_folder.h"

using namespace halfstep;

TEST_CASE("WordPiece and byte pairs give the ids of Hugging Face's tokenizers") {
  const auto fixture =
      nlohmann::ordered_json::parse(std::ifstream(HALFSTEP_SOURCE "/tests/reference/tokenizer_parity.json"));
  const auto texts = fixture.at("texts").get<std::vector<std::string>>();
  TemporaryFolder folder;
  for (const auto& expected : fixture.at("cases")) {
    std::ofstream(folder.path() / "tokenizer.json") << expected.at("file").dump();
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      CAPTURE(texts[i]);
      const std::vector<std::uint32_t> ids = tokenizer.encode(texts[i]);
      CHECK(ids == expected.at("ids").at(i).get<std::vector<std::uint32_t>>());
      CHECK(tokenizer.decode(ids) == expected.at("decoded").at(i).get<std::string>());
    }
    for (const auto& pair : expected.at("pairs")) {
      CAPTURE(pair.dump());
      const auto first = pair.at("first").get<std::string>();
      const std::string second = pair.at("second").is_null() ? "" : pair.at("second").get<std::string>();
      const Encoding both = tokenizer.encode_for_model(
          first, pair.at("second").is_null() ? std::nullopt : std::optional<std::string_view>(second),
          pair.at("longest").get<std::int64_t>());
      CHECK(both.tokens == pair.at("ids").get<std::vector<std::uint32_t>>());
      CHECK(both.segments == pair.at("segments").get<std::vector<std::uint32_t>>());
    }
  }
}
