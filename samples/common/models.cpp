#include "samples/common/models.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace samples {
namespace {

/// An entry of the metadata; throws Error if it is missing.
const std::string& entry(const halfstep::CheckpointSummary& summary, const std::string& file, const char* key) {
  const auto found = summary.metadata.find(key);
  if (found == summary.metadata.end()) {
    halfstep::fail(file,
                   fmt::format("expected a checkpoint whose metadata says the {} of what it holds, got none", key),
                   "samples of this version write it; bin/inspect shows what a file has");
  }
  return found->second;
}

/// Parses the numbers of "32x32x3" or "0.5,0.25".
template <typename Number>
std::vector<Number> numbers(const std::string& file, const std::string& text, char separator) {
  std::vector<Number> result;
  for (const std::string& part : CLI::detail::split(text, separator)) {
    Number value{};
    if (!CLI::detail::lexical_cast(part, value)) {
      halfstep::fail(file,
                     fmt::format("expected numbers with {} between them in its metadata, got '{}'", separator, text));
    }
    result.push_back(value);
  }
  return result;
}

std::vector<std::string> names(const std::string& file, const std::string& text) {
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  const auto is_text = [](const nlohmann::json& item) { return item.is_string(); };
  if (!list.is_array() || list.empty() || !std::ranges::all_of(list, is_text)) {
    halfstep::fail(file, "expected a list of names for the classes in its metadata, got something else");
  }
  return list.get<std::vector<std::string>>();
}

void check(const ModelDescription& model, const std::string& file) {
  constexpr std::int64_t largest = 4096;
  const auto fits = [](std::int64_t extent) { return extent >= 1 && extent <= largest; };
  const auto finite = [](float value) { return std::isfinite(value); };
  const bool image =
      model.input.size() == 3 && std::ranges::all_of(model.input, fits) && (model.input[2] == 1 || model.input[2] == 3);
  const auto one_each = [&](const std::vector<float>& values) {
    return values.size() == 1 || std::ssize(values) == model.input[2];
  };
  const auto usable = [](float value) { return std::isfinite(value) && value > 0; };
  if (!image || !one_each(model.mean) || !std::ranges::all_of(model.mean, finite) || !one_each(model.stddev) ||
      !std::ranges::all_of(model.stddev, usable)) {
    halfstep::fail(file, "expected images of one or three channels, with a mean and deviation, in its metadata");
  }
}

}  // namespace

ModelDescription describe_model(const halfstep::CheckpointSummary& summary, const std::string& file) {
  halfstep::check_format(summary.metadata, file);
  ModelDescription model;
  model.name = entry(summary, file, "model");
  model.input = numbers<std::int64_t>(file, entry(summary, file, "input"), 'x');
  model.mean = numbers<float>(file, entry(summary, file, "mean"), ',');
  model.stddev = numbers<float>(file, entry(summary, file, "deviation"), ',');
  model.classes = names(file, entry(summary, file, "classes"));
  check(model, file);
  return model;
}

}  // namespace samples
