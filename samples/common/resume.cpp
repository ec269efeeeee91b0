#include "samples/common/resume.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "samples/common/checkpoint.h"
#include "samples/common/say.h"

namespace samples {
namespace {

using Texts = std::map<std::string, std::string>;

constexpr const char* flags_key = "flags";
constexpr const char* shape_key = "data_shape";
constexpr const char* checksum_key = "data_checksum";

std::string text_of(const halfstep::Shape& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

std::string entry(const Texts& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

/// The flags in a checkpoint's metadata; none if it does not have them, or not as a map of strings.
Texts recorded_flags(const Texts& metadata) {
  Texts flags;
  const nlohmann::json json = nlohmann::json::parse(entry(metadata, flags_key), nullptr, false);
  if (!json.is_object()) return flags;
  for (const auto& [name, value] : json.items()) {
    if (value.is_string()) flags[name] = value.get<std::string>();
  }
  return flags;
}

bool same(const std::string& a, const std::string& b) {
  double x = 0;
  double y = 0;
  return a == b || (CLI::detail::lexical_cast(a, x) && CLI::detail::lexical_cast(b, y) && x == y);
}

/// Whether a set's classes have names, rather than the numbers that class_names() uses instead.
bool named(const nlohmann::json& classes) {
  return classes.is_array() && !classes.empty() && classes[0].is_string() &&
         !classes[0].get<std::string>().starts_with("class ");
}

void refuse_other_data(const Texts& metadata, const Data& data, const CommonOptions& options) {
  const std::string file = options.resume.string();
  const std::string shape = entry(metadata, shape_key);
  const std::string own_shape = text_of(data.train.sample_shape);
  if (!shape.empty() && shape != own_shape) {
    halfstep::fail(file, fmt::format("expected a checkpoint of samples of {}, as in {}, got one of {}", own_shape,
                                     options.data.string(), printable(shape)));
  }
  const nlohmann::json classes = nlohmann::json::parse(entry(metadata, "classes"), nullptr, false);
  if (!classes.is_array()) return;
  if (classes.size() != data.classes.size()) {
    halfstep::fail(
        file, fmt::format("expected a checkpoint of {} classes, got one of {}", data.classes.size(), classes.size()));
  }
  // As the checkpoint has them: names of folders need not be UTF-8.
  const nlohmann::json own = nlohmann::json::parse(
      nlohmann::json(data.classes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (named(classes) && named(own) && classes != own) {
    halfstep::fail(
        file, fmt::format("expected a checkpoint of the classes of {}, {}, ..., got one of {}, ...",
                          options.data.string(), own[0].get<std::string>(), printable(classes[0].get<std::string>())));
  }
}

/// Settings that differ between a checkpoint and the command line, grouped by whose value is used.
struct Differences {
  std::vector<std::string> of_command_line;
  std::vector<std::string> of_checkpoint;
};

std::string shown(const std::string& flag, const std::string& value) {
  if (value.empty()) return "no " + flag;
  return value == "true" ? flag : fmt::format("{} {}", flag, printable(value));
}

/// Whether the checkpoint's loss scale is used: a dynamic one goes on as one. A file of an older version does not say
/// what its scale is: then it is taken for dynamic.
bool scale_goes_on(const Texts& metadata, const halfstep::Precision& precision) {
  const std::string dynamic = entry(metadata, "loss_scale_dynamic");
  return precision.loss_scale.kind == halfstep::LossScale::Kind::dynamic && (dynamic.empty() || dynamic == "true");
}

void compare_flags(const Texts& metadata, const CommonOptions& options, const halfstep::Precision& precision,
                   Differences& differences) {
  const Texts before = recorded_flags(metadata);
  for (const auto& [name, now] : options.flags) {
    const std::string old = entry(before, name);
    if (same(old, now)) continue;
    if (name == "--loss-scaling-factor" && scale_goes_on(metadata, precision)) {
      differences.of_checkpoint.push_back(fmt::format("its loss scale (command line: {})", shown(name, now)));
    } else {
      differences.of_command_line.push_back(
          fmt::format("{} (checkpoint: {})", shown(name, now), old.empty() ? "none" : printable(old)));
    }
  }
}

Differences compare(const Texts& metadata, const CommonOptions& options, const halfstep::Precision& precision,
                    const Data& data) {
  Differences differences;
  if (metadata.contains(flags_key)) compare_flags(metadata, options, precision, differences);
  const std::string seed = entry(metadata, "seed");
  if (options.seed_given && !seed.empty() && seed != std::to_string(options.seed)) {
    differences.of_checkpoint.push_back(fmt::format("--seed {} (command line: {})", printable(seed), options.seed));
  }
  const std::string sum = entry(metadata, checksum_key);
  if (sum.empty() || sum == checksum(data.train)) return differences;
  const std::string samples = entry(metadata, "samples");
  if (samples == std::to_string(data.train.count)) {
    differences.of_command_line.push_back(
        fmt::format("the data in {} (checkpoint: other data)", options.data.string()));
  } else {
    differences.of_command_line.push_back(
        fmt::format("{} samples (checkpoint: {})", data.train.count, printable(samples)));
  }
  return differences;
}

std::optional<EpochResult> untested_of(const Texts& metadata) {
  const nlohmann::json json = nlohmann::json::parse(entry(metadata, untested_key), nullptr, false);
  if (!json.is_object()) return {};
  const auto number = [&json](const char* name) {
    const auto found = json.find(name);
    const bool finite = found != json.end() && found->is_number();
    return finite ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
  };
  EpochResult result{.loss = number("loss")};
  const auto steps = json.find("steps");
  if (steps != json.end() && steps->is_number_unsigned()) result.steps = steps->get<std::uint64_t>();
  result.seconds = number("seconds");
  result.samples_per_second = number("samples_per_second");
  return result;
}

}  // namespace

std::string checksum(const halfstep::Dataset& set) {
  uLong sum = crc32_z(0, nullptr, 0);
  for (const halfstep::Field& field : set.all_fields()) {
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>(field.data.data()), field.data.size());
  }
  return fmt::format("{:08x}", sum);
}

std::string untested_note(const EpochResult& result) {
  const nlohmann::json json{{"loss", result.loss},
                            {"steps", result.steps},
                            {"seconds", result.seconds},
                            {"samples_per_second", result.samples_per_second}};
  return json.dump();
}

Texts run_notes(const CommonOptions& options, const Data& data) {
  return {{flags_key, nlohmann::json(options.flags).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)},
          {shape_key, text_of(data.train.sample_shape)},
          {checksum_key, checksum(data.train)}};
}

Resumed resume(halfstep::Trainer& trainer, const halfstep::Precision& precision, const Data& data,
               std::int64_t epoch_steps, const CommonOptions& options) {
  const halfstep::CheckpointSummary summary = halfstep::summarize_checkpoint(options.resume);
  const Texts& metadata = summary.metadata;
  halfstep::check_format(metadata, options.resume.string());
  refuse_other_data(metadata, data, options);
  const halfstep::ResumePoint point = trainer.load(options.resume);
  warn_of_values_not_finite(options.resume, summary);
  const std::optional<EpochResult> untested = untested_of(metadata);
  const Differences differences = compare(metadata, options, precision, data);
  std::string line = fmt::format("resumed from {} after {} steps, with {} of the {} steps of epoch {} done",
                                 options.resume.string(), point.step, point.epoch_step, epoch_steps, point.epoch + 1);
  if (untested) line += "; the test that is due then comes first";
  if (!differences.of_command_line.empty()) {
    line += fmt::format("; the command line counts for {}", fmt::join(differences.of_command_line, ", "));
  }
  if (!differences.of_checkpoint.empty()) {
    line += fmt::format("; the checkpoint counts for {}", fmt::join(differences.of_checkpoint, ", "));
  }
  if (!metadata.contains(flags_key)) line += "; an older version wrote it, so flags cannot be compared";
  const bool differs = !differences.of_command_line.empty() || !differences.of_checkpoint.empty();
  if (!options.quiet || differs) say("{}\n", line);
  return {point, metadata, untested};
}

}  // namespace samples
