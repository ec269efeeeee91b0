#include "train/about_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace halfstep::train {

io::Metadata about_model(const TrainerOptions& options) {
  io::Metadata about;
  if (!options.model.empty()) about["model"] = options.model;
  if (!options.classes.empty()) {
    // Names may come from a file system, and need not be UTF-8.
    about["classes"] = nlohmann::json(options.classes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  if (!options.feed || !options.feed->samples.defined()) return about;
  const Shape shape = options.feed->samples.shape();
  about["input"] = fmt::format("{}", fmt::join(shape.begin() + 1, shape.end(), "x"));
  about["mean"] = fmt::format("{}", fmt::join(options.feed->mean, ","));
  about["deviation"] = fmt::format("{}", fmt::join(options.feed->stddev, ","));
  return about;
}

}  // namespace halfstep::train
