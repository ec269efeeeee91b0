// Learns a vocabulary from files with a text a line, and writes the folder that Tokenizer::load and transformers read:
//
//   $ bin/train_vocab train_text.txt --size 8000 --out vocabulary
//   11916 texts, 8000 tokens, 1.5 s
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include "samples/common/command_line.h"
#include "samples/common/say.h"
#include "samples/text/text_data.h"

using namespace halfstep;

namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<fs::path> files;
  fs::path out;
  std::string kind = "wordpiece";
  VocabularyOptions vocabulary;
  bool cased = false;
};

std::vector<std::string> read_texts(const std::vector<fs::path>& files) {
  std::vector<std::string> texts;
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::size_t first = texts.size();
    for (std::string line; std::getline(stream, line);) texts.push_back(std::move(line));
    if (!stream.is_open() || stream.bad() || fs::is_directory(file))
      fail(ErrorCode::bad_file, "data", fmt::format("cannot read {}", file.string()));
    if (texts.size() > first) samples::drop_byte_order_mark(texts[first]);
  }
  if (texts.empty()) fail(ErrorCode::bad_file, "data", "expected files with a text a line, got none");
  return texts;
}

int run(const Options& options) {
  const bool pieces = options.kind == "wordpiece";
  samples::make_folder("--out", options.out);
  check_writable(options.out / "tokenizer.json");
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> texts = read_texts(options.files);
  const Tokenizer tokenizer =
      pieces ? Tokenizer::train_word_piece(texts, options.vocabulary, {.lower_case = !options.cased})
             : Tokenizer::train_byte_pairs(texts, options.vocabulary);
  tokenizer.save(options.out / "tokenizer.json");
  if (pieces) tokenizer.save_vocabulary(options.out / "vocab.txt");
  samples::say("{} texts, {} tokens, {:.1f} s\n", texts.size(), tokenizer.size(),
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Learns a vocabulary from texts.");
  Options options;
  app.add_option("files", options.files, "Files with a text a line")->required();
  app.add_option("--out", options.out, "Folder for tokenizer.json, and vocab.txt of WordPiece")->required();
  app.add_option("--kind", options.kind, "wordpiece, as BERT's, or bytepairs, as GPT-2's")
      ->check(CLI::IsMember({"wordpiece", "bytepairs"}))
      ->capture_default_str();
  app.add_option("--size", options.vocabulary.size, "Tokens at most, special ones included")
      ->transform(samples::whole_number(256, 1 << 24))
      ->capture_default_str();
  app.add_option("--least-count", options.vocabulary.least_count, "Pairs that occur less often are not merged")
      ->transform(samples::whole_number(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--special", options.vocabulary.special, "Tokens that are never cut, besides BERT's five");
  app.add_flag("--cased", options.cased, "Keep case and accents (wordpiece; bytepairs always do)");
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
