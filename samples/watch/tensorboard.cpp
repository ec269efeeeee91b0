// The fields' numbers are those of tensorboard/compat/proto (event, summary, histogram, tensor, graph, node_def) and of
// tensorboard/plugins/hparams (plugin_data, api).
#include "samples/watch/tensorboard.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

namespace samples {
namespace {

/// The summary of one value with this tag.
Message value_of(std::string_view tag) {
  return Message().text(1, tag);
}

Message plug_in(std::string_view name, const Message& content) {
  return Message().message(1, Message().text(1, name).message(2, content));
}

void add_scalar(Message& summary, const std::string& tag, const Record& value) {
  if (!value.is_number()) return;
  summary.message(1, value_of(tag).single(2, value.get<float>()));
}

void add_text(Message& summary, const std::string& tag, const std::string& text) {
  constexpr std::uint64_t string_type = 7;
  const Message tensor = Message().integer(1, string_type).message(2, Message()).text(8, text);
  summary.message(1, value_of(tag).message(8, tensor).message(9, plug_in("text", Message())));
}

/// An event of the hyperparameters' plug-in.
Message hyperparameters(const char* tag, std::uint32_t field, const Message& content) {
  constexpr std::uint64_t float_type = 1;
  const Message no_tensor = Message().integer(1, float_type).message(2, Message());
  const Message data = Message().integer(1, 0).message(field, content);
  return value_of(tag).message(8, no_tensor).message(9, plug_in("hparams", data));
}

/// google.protobuf.Value: a number where the text is one.
Message flag_value(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && std::isfinite(number)) return Message().number(2, number);
  return Message().text(3, text);
}

Message metric_info(const char* group, const char* tag) {
  return Message().message(1, Message().text(1, group).text(2, tag));
}

/// HistogramProto: how many numbers have which exponent.
Message histogram(const Record& record) {
  std::vector<double> limits;
  std::vector<double> counts;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  double sum = 0;
  double squares = 0;
  double all = 0;
  double exponent = record["first_exponent"].get<double>();
  for (const Record& bin : record["exponents"]) {
    const double count = bin.get<double>();
    limits.push_back(exponent + 1);
    counts.push_back(count);
    if (count > 0) {
      least = std::min(least, exponent);
      most = std::max(most, exponent + 1);
    }
    all += count;
    sum += count * exponent;
    squares += count * exponent * exponent;
    exponent += 1;
  }
  if (all == 0) least = most = 0;
  return Message()
      .number(1, least)
      .number(2, most)
      .number(3, all)
      .number(4, sum)
      .number(5, squares)
      .numbers(6, limits)
      .numbers(7, counts);
}

/// A name that TensorBoard's graphs accept; slashes make groups.
std::string node_name(const std::string& label) {
  std::string name;
  for (const char c : label) {
    if (c == ' ') continue;
    const bool fine = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '_' || c == '.' || c == '-';
    name += fine ? c : (c == '+' ? '-' : '_');
  }
  return name;
}

std::string markdown(const Record& start) {
  std::string text =
      fmt::format("**{}**, {}, on {}\n\n| flag | value |\n|---|---|\n", start["program"].get<std::string>(),
                  start["precision"].get<std::string>(), start["device"].get<std::string>());
  for (const auto& [flag, value] : start["flags"].items()) {
    text += fmt::format("| `{}` | {} |\n", flag, value.get<std::string>());
  }
  return text;
}

/// The picture of a file; none where it cannot be read.
std::optional<Message> image_of(const Record& record) {
  std::ifstream in(record["path"].get<std::string>(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (bytes.empty()) return {};
  return Message()
      .integer(1, record["height"].get<std::uint64_t>())
      .integer(2, record["width"].get<std::uint64_t>())
      .integer(3, 3)
      .text(4, bytes);
}

}  // namespace

void TensorBoard::add_summary(std::uint64_t step, const Message& values) {
  if (!values.bytes().empty()) file_.add(Message().integer(2, step).message(5, values));
}

void TensorBoard::add_start(const Record& record) {
  Message summary;
  add_text(summary, "run", markdown(record));
  Message session;
  for (const auto& [flag, value] : record["flags"].items()) {
    const std::string text = value.get<std::string>();
    const std::string name = flag.substr(std::min(flag.size(), flag.find_first_not_of('-')));
    if (!text.empty()) session.message(1, Message().text(1, name).message(2, flag_value(text)));
  }
  session.message(1,
                  Message().text(1, "precision").message(2, Message().text(3, record["precision"].get<std::string>())));
  session.message(1, Message().text(1, "seed").message(2, Message().number(2, record["seed"].get<double>())));
  Message experiment;
  experiment.message(5, metric_info("", "test/accuracy")).message(5, metric_info("", "train/loss"));
  summary.message(1, hyperparameters("_hparams_/experiment", 2, experiment));
  summary.message(1, hyperparameters("_hparams_/session_start_info", 3, session));
  add_summary(record["step"].get<std::uint64_t>(), summary);
}

void TensorBoard::add_graph(const Record& record) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  Message graph;
  for (const Record& row : record["rows"]) {
    const std::string wanted = row["phase"].get<std::string>() + "/" + node_name(row["label"].get<std::string>());
    std::string name = wanted;
    for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    Message node;
    node.text(1, name).text(2, row["shader"].get<std::string>());
    std::set<std::int64_t> inputs;
    for (const Record& from : row["from"]) inputs.insert(from.get<std::int64_t>());
    for (const std::int64_t from : inputs) node.text(3, names[static_cast<std::size_t>(from)]);
    for (const char* key : {"bytes", "flops"}) {
      const Message number = Message().single(4, row[key].get<float>());
      node.message(5, Message().text(1, key).message(2, number));
    }
    graph.message(1, node);
    names.push_back(name);
  }
  graph.message(4, Message().integer(1, 22));  // of producers, as TensorBoard's own
  file_.add(Message().text(4, graph.bytes()));
}

void TensorBoard::write(const Record& record) {
  const std::string kind = record["kind"].get<std::string>();
  const std::uint64_t step = record.value("step", std::uint64_t{0});
  Message summary;
  if (kind == "start") add_start(record);
  if (kind == "operators") add_graph(record);
  if (kind == "decision") add_text(summary, "decisions", record["text"].get<std::string>());
  if (kind == "step") {
    for (const char* key : {"loss", "rate", "loss_scale", "gradient_norm", "clip", "skipped"}) {
      add_scalar(summary, fmt::format("train/{}", key), record[key]);
    }
    for (const auto& [name, value] : record["metrics"].items()) add_scalar(summary, "train/" + name, value);
  }
  if (kind == "evaluation") {
    add_scalar(summary, "train/samples_per_second", record["samples_per_second"]);
    for (const auto& [name, value] : record["scores"].items()) {
      add_scalar(summary, "test/" + (name.starts_with("test_") ? name.substr(5) : name), value);
    }
  }
  if (kind == "tensor") {
    const std::string tag = "exponents/" + record["name"].get<std::string>();
    summary.message(1, value_of(tag).message(5, histogram(record)));
  }
  if (kind == "picture") {
    if (const auto image = image_of(record))
      summary.message(1, value_of(record["name"].get<std::string>()).message(4, *image));
  }
  if (kind == "end") {
    const std::uint64_t status = record["complete"].get<bool>() ? 1 : 2;
    summary.message(1, hyperparameters("_hparams_/session_end_info", 4, Message().integer(1, status)));
  }
  add_summary(step, summary);
}

}  // namespace samples
