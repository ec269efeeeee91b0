#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "samples/common/models.h"

/// Training that one can watch: what a run writes about itself, beside its checkpoints.
namespace CLI {
class App;
}  // namespace CLI

namespace samples {

/// A flag and the file that it names; no file if the path is empty.
struct NamedFile {
  std::string flag;
  std::filesystem::path path;
};

/// The flags of whatever a run writes about itself. Paths that are empty are not written.
struct WatchOptions {
  std::filesystem::path log;          ///< JSON lines: see log.h
  std::filesystem::path plot;         ///< .svg or .png
  std::filesystem::path tensorboard;  ///< folder of event files
  std::filesystem::path trace;        ///< of a few steps, for ui.perfetto.dev
  std::filesystem::path graph;        ///< of the step: .svg, .dot or .json
  std::filesystem::path pictures;     ///< folder of PNG files: what is predicted for some images, after each test
  std::string tensors;                ///< pattern of the tensors whose statistics are recorded
  std::uint64_t tensors_every = 50;   ///< steps between two of these records
  /// What compiling decided (TrainerOptions::log), for the log.
  std::shared_ptr<std::vector<std::string>> decisions = std::make_shared<std::vector<std::string>>();
  /// What is trained, for the pictures: without the input's shape.
  std::shared_ptr<ModelDescription> model = std::make_shared<ModelDescription>();

  /// Whether every step is recorded.
  bool records() const { return !log.empty() || !plot.empty() || !tensorboard.empty(); }
  bool any() const { return records() || !trace.empty() || !graph.empty(); }
};

/// The files among them, with their flags.
std::vector<NamedFile> watched_files(const WatchOptions& options);

/// Adds --log, --plot, --tensorboard, --trace, --graph, --watch and --watch-every, and for programs that classify
/// images
/// --pictures.
void add_watch_options(CLI::App& app, WatchOptions& options, bool classifies_images);

/// `training` with what is recorded measured, and decisions and the model kept; its own log is still called.
halfstep::TrainerOptions watched(const WatchOptions& options, halfstep::TrainerOptions training);

}  // namespace samples
