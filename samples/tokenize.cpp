// Prints the ids of each line's tokens, or with --text the tokens:
//
//   $ echo "Hello, wörld!" | bin/tokenize vocabulary --text
//   hello , wor ##ld !
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <utility>

#include "samples/common/command_line.h"
#include "samples/text/text_data.h"

using namespace halfstep;

namespace {

namespace fs = std::filesystem;

void print(const Tokenizer& tokenizer, std::istream& texts, bool as_text) {
  bool first = true;
  for (std::string line; std::getline(texts, line) && !interrupted();) {
    if (std::exchange(first, false)) samples::drop_byte_order_mark(line);
    std::string printed;
    for (const std::uint32_t id : tokenizer.encode(line)) {
      if (!printed.empty()) printed += ' ';
      printed += as_text ? tokenizer.token(id) : std::to_string(id);
    }
    std::cout << printed << '\n';
  }
}

int run(const fs::path& tokenizer_path, const fs::path& file, bool as_text) {
  const Tokenizer tokenizer =
      tokenizer_path.extension() == ".txt" ? Tokenizer::word_piece(tokenizer_path) : Tokenizer::load(tokenizer_path);
  if (file.empty()) {
    print(tokenizer, std::cin, as_text);
    return samples::exit_done;
  }
  std::ifstream stream(file, std::ios::binary);
  print(tokenizer, stream, as_text);
  if (!stream.is_open() || stream.bad() || fs::is_directory(file))
    fail(ErrorCode::bad_file, "data", fmt::format("cannot read {}", file.string()));
  return samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Prints the tokens of texts, a line for each line.");
  fs::path tokenizer;
  fs::path file;
  bool as_text = false;
  app.add_option("tokenizer", tokenizer, "tokenizer.json, the folder that has it, or vocab.txt")->required();
  app.add_option("file", file, "Texts; without it, standard input");
  app.add_flag("--text", as_text, "Print tokens, not their ids");
  return samples::run_program(app, argc, argv, [&] { return run(tokenizer, file, as_text); });
}
