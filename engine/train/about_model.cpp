#include "train/about_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "train/metadata_keys.h"

namespace halfstep::train {
namespace {

std::string json_text(const nlohmann::json& names) {
  return names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

io::Metadata about_model(const TrainerOptions& options) {
  io::Metadata about;
  // Names may come from a file system, and need not be UTF-8. Files are compared with what is stored here.
  if (!options.model.empty()) about[keys::model] = nlohmann::json::parse(json_text(options.model)).get<std::string>();
  if (!options.classes.empty()) about[keys::classes] = json_text(options.classes);
  if (!options.feed || !options.feed->samples.defined()) return about;
  const Shape shape = options.feed->samples.shape();
  about[keys::input] = fmt::format("{}", fmt::join(shape.begin() + 1, shape.end(), "x"));
  about[keys::mean] = fmt::format("{}", fmt::join(options.feed->mean, ","));
  about[keys::deviation] = fmt::format("{}", fmt::join(options.feed->stddev, ","));
  return about;
}

}  // namespace halfstep::train
