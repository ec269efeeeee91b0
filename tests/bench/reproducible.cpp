#include <halfstep/halfstep.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/commands.h"
#include "bench/models.h"
#include "samples/common/command_line.h"
#include "samples/common/say.h"

namespace bench {
namespace {

using namespace halfstep;

struct ReproducibleOptions {
  std::vector<std::string> models{"lenet5", "fashion_cnn", "resnet8", "bert_tiny", "gpt"};
  std::vector<std::string> precisions{"float32", "float16", "bfloat16_weights"};
  std::int64_t batch = 2;
  std::int64_t steps = 100;
  std::string hashes;  ///< a file of what other devices ended with
};

struct Trained {
  double milliseconds = 0;  ///< of a step, the first left out
  std::uint64_t hash = 0;   ///< of the file of weights
  double loss = 0;
};

/// What trainings ended with on other devices, in a file: "MODEL PRECISION BATCH STEPS HASH" in each line.
class KnownHashes {
 public:
  explicit KnownHashes(std::string path) : path_(std::move(path)) {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      const std::size_t end = line.rfind(' ');
      if (end != std::string::npos) known_[line.substr(0, end)] = line.substr(end + 1);
    }
  }

  /// Says whether a training ended as it is known to; one that is not known is added to the file.
  std::string compare(const std::string& training, const std::string& hash) {
    if (path_.empty()) return "";
    const auto [known, is_new] = known_.try_emplace(training, hash);
    if (!is_new && known->second == hash) return "  as known";
    if (!is_new) {
      ++different_;
      return fmt::format("  DIFFERS from {}", known->second);
    }
    std::ofstream file(path_, std::ios::app);
    if (!(file << training << ' ' << hash << '\n' << std::flush))
      fail("--hashes", fmt::format("cannot write {}", path_));
    return "  new";
  }

  int different() const { return different_; }

 private:
  std::string path_;
  std::map<std::string, std::string> known_;
  int different_ = 0;
};

/// FNV-1a.
std::uint64_t hash_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (char byte = 0; file.get(byte);) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

Trained train(const Device& device, const Model& model, const Precision& precision, std::int64_t batch,
              std::int64_t steps) {
  const Dataset set = model.set(4 * batch);
  Graph graph;
  Training training = model.build(graph, batch, 3);
  Trainer trainer = Trainer::compile(device, graph,
                                     {.loss = training.loss,
                                      .metrics = std::move(training.metrics),
                                      .optimizer = Adam{.rate = 1e-3F},
                                      .precision = precision,
                                      .feed = std::move(training.feed),
                                      .training_set = &set});
  trainer.step();
  trainer.finish();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 1; i < steps; ++i) trainer.step();
  trainer.finish();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  const std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("bench-{}.weights", getpid());
  trainer.save_weights(file);
  const std::uint64_t hash = hash_of(file);
  std::filesystem::remove(file);
  return {time.count() / static_cast<double>(steps - 1), hash, trainer.report().loss};
}

void run(const ReproducibleOptions& options, const Device& device) {
  KnownHashes known(options.hashes);
  samples::say("{}\n{:<14}{:<18}{:>18}  {:>10}{:>12}{:>12}{:>10}\n", device.info().name, "model", "precision",
               "hash of weights", "loss", "ms a step", "otherwise", "slowdown");
  for (const std::string& name : options.models) {
    for (const std::string& level : options.precisions) {
      Precision precision = Precision::level(level);
      const Trained other =
          train(device, model_of(name), precision, options.batch, std::min<std::int64_t>(options.steps, 10));
      precision.reproducible = true;
      const Trained trained = train(device, model_of(name), precision, options.batch, options.steps);
      const std::string hash = fmt::format("{:016x}", trained.hash);
      samples::say("{:<14}{:<18}  {}  {:>10.6f}{:>12.2f}{:>12.2f}{:>10.2f}{}\n", name, level, hash, trained.loss,
                   trained.milliseconds, other.milliseconds, trained.milliseconds / other.milliseconds,
                   known.compare(fmt::format("{} {} {} {}", name, level, options.batch, options.steps), hash));
    }
  }
  if (known.different() > 0) {
    fail("reproducible", fmt::format("expected the hashes of {}, got {} others", options.hashes, known.different()));
  }
}

}  // namespace

Command add_reproducible(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "reproducible",
      "Trains models with Precision::reproducible: hashes of their weights, to be equal on every device");
  const auto options = std::make_shared<ReproducibleOptions>();
  command->add_option("--models", options->models, "What is trained")
      ->check(trained_model())
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--precisions", options->precisions, "What is stored and computed in which type")
      ->check(CLI::IsMember(Precision::names()))
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Samples in a step")
      ->transform(samples::whole_number(1, 65536))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "Steps of each training; all but the first are timed")
      ->transform(samples::whole_number(2, 100000))
      ->capture_default_str();
  command->add_option("--hashes", options->hashes,
                      "Compare with the hashes in this file, and add those that it does not have");
  return {command, [options](const Bench& bench, const std::filesystem::path& json) {
            if (!json.empty()) fail("--json", "expected no file with reproducible, which prints hashes only, got one");
            run(*options, bench.device());
          }};
}

}  // namespace bench
