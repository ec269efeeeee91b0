#include "samples/watch/curves.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "samples/watch/fields.h"

namespace samples {
namespace {

/// Whether a chart can show a step that a log has: the axis of larger ones would have marks that a double does not tell
/// apart.
bool is_step(double step) {
  constexpr double most = 9e12;  // 2^53 / 1000
  return step >= 0 && step <= most;
}

/// Takes a curve out of those that are left.
Curve take(std::map<std::string, std::vector<Point>>& from, const std::string& key, std::string name, bool dots) {
  const auto found = from.find(key);
  if (found == from.end()) return {std::move(name), {}, dots};
  Curve curve{std::move(name), std::move(found->second), dots};
  from.erase(found);
  return curve;
}

/// Whether one scale would hide most of the curves: a loss that begins far above where it ends.
bool spans_magnitudes(const std::vector<Curve>& curves) {
  std::vector<double> values;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points)
      if (std::isfinite(point.y)) values.push_back(point.y);
  }
  if (values.empty()) return false;
  std::ranges::sort(values);
  constexpr double factor = 20;
  return values.front() > 0 && values.back() > factor * values[values.size() / 2];
}

}  // namespace

void Curves::add(const Record& record) {
  const std::string kind = text(record, "kind");
  if (kind == "start") {
    title_ = fmt::format("{}, {}", text(record, "program"), text(record, "precision"));
    device_ = text(record, "device");
    const double steps = number(record, "steps");
    steps_ = is_step(steps) ? static_cast<std::int64_t>(steps) : 0;
  }
  if (kind == "step") add_step(record);
  if (kind == "evaluation") add_evaluation(record);
}

void Curves::add_step(const Record& record) {
  const double step = number(record, "step");
  if (!is_step(step)) return;
  step_ = static_cast<std::int64_t>(step);
  for (const char* key : {"loss", "rate", "loss_scale", "gradient_norm", "skipped"}) {
    steps_by_key_[key].push_back({step, number(record, key)});
  }
  const auto metrics = record.find("metrics");
  if (metrics == record.end() || !metrics->is_object()) return;
  for (const auto& [name, value] : metrics->items()) {
    steps_by_key_["metrics/" + name].push_back({step, number(*metrics, name)});
  }
}

void Curves::add_evaluation(const Record& record) {
  const double step = number(record, "step");
  const auto scores = record.find("scores");
  if (!is_step(step) || scores == record.end() || !scores->is_object()) return;
  for (const auto& [name, value] : scores->items()) scores_by_name_[name].push_back({step, number(*scores, name)});
}

std::vector<ChartPanel> Curves::panels() const {
  auto steps = steps_by_key_;
  auto scores = scores_by_name_;
  const auto with_test = [&](const std::string& key, const char* test, const char* test_name) {
    std::vector<Curve> curves{take(steps, key, "training", false)};
    if (scores.contains(test)) curves.push_back(take(scores, test, test_name, true));
    return curves;
  };
  const std::vector<Curve> losses = with_test("loss", "validation_loss", "validation");
  std::vector<ChartPanel> panels{{"loss", losses, spans_magnitudes(losses), false}};
  panels.push_back({"accuracy", with_test("metrics/accuracy", "test_accuracy", "test"), false, true});
  panels.push_back({"learning rate", {take(steps, "rate", "", false)}, false, false});
  panels.push_back({"loss scale", {take(steps, "loss_scale", "", false)}, true, false});
  panels.push_back({"gradient norm", {take(steps, "gradient_norm", "", false)}, true, false});
  panels.push_back({"skipped steps", {take(steps, "skipped", "", false)}, false, false});
  while (!steps.empty()) {
    const std::string key = steps.begin()->first;
    panels.push_back({key.substr(key.find('/') + 1), {take(steps, key, "training", false)}, false, false});
  }
  while (!scores.empty()) {
    const std::string name = scores.begin()->first;
    panels.push_back({name, {take(scores, name, "test", true)}, false, false});
  }
  return panels;
}

std::string Curves::subtitle() const {
  const std::string of = steps_ > 0 ? fmt::format(" of {}", steps_) : "";
  return fmt::format("{}, step {}{}", device_, step_, of);
}

}  // namespace samples
