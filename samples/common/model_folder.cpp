#include "samples/common/model_folder.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>

namespace samples {

void describe_folders(CLI::App& app, const std::string& when) {
  app.get_option("--save")->description(
      fmt::format("Folder for the model {}, which transformers loads, and the checkpoint to go on from", when));
  app.get_option("--resume")->description("Folder that --save wrote, to go on from");
}

void name_checkpoints(CommonOptions& options) {
  if (!options.save.empty()) {
    make_folder("--save", options.save);
    options.save /= checkpoint_name;
  }
  if (!options.resume.empty()) options.resume /= checkpoint_name;
}

void write_config(const std::filesystem::path& folder, const nlohmann::ordered_json& config) {
  const std::string text = config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const halfstep::Bytes parts[] = {std::as_bytes(std::span(text))};
  halfstep::write_atomically(folder / config_name, parts);
}

double as_meant(float value) {
  return std::stod(fmt::format("{}", value));
}

void save_weights(halfstep::Trainer& trainer, const std::filesystem::path& folder) {
  try {
    trainer.save_weights(folder / weights_name);
  } catch (const halfstep::Error& error) {
    fmt::print(stderr, "warning: {}\n", error.what());
  }
}

}  // namespace samples
