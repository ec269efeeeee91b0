#include "samples/common/report.h"

#include <nlohmann/json.hpp>

namespace samples {

namespace {

halfstep::ExchangeCosts costs_of(const halfstep::Ranks& ranks) {
  return ranks.exchange ? ranks.exchange->costs() : halfstep::ExchangeCosts{};
}

}  // namespace

// Joining the ranks waits for the slowest of them to start, which is no part of the training.
RunCosts::RunCosts(const halfstep::Ranks& ranks) : ranks_(ranks), before_(costs_of(ranks)) {}

void RunCosts::take(Report& report) const {
  const halfstep::ExchangeCosts now = costs_of(ranks_);
  report.ranks = ranks_.size();
  report.exchange = {now.bytes_sent - before_.bytes_sent, now.waited - before_.waited};
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void write_json(const Report& report, const std::filesystem::path& path) {
  using Json = nlohmann::ordered_json;
  Json epochs = Json::array();
  for (const EpochResult& epoch : report.epochs) {
    epochs.push_back({{"loss", epoch.loss},
                      {"steps", epoch.steps},
                      {"seconds", epoch.seconds},
                      {"samples_per_second", epoch.samples_per_second}});
    if (epoch.test_accuracy) epochs.back()["test_accuracy"] = *epoch.test_accuracy;
    for (const auto& [name, score] : epoch.scores) epochs.back()[name] = score;
  }
  const Json json = {
      {"device", report.device},
      {"precision", report.precision},
      {"parameters", report.plan.parameters},
      {"epochs", epochs},
      {"steps", report.last_step.step},
      {"skipped_steps", report.last_step.skipped},
      {"tensor_updates_skipped", report.last_step.tensor_updates_skipped},
      {"loss_scale", report.last_step.loss_scale},
      {"dispatches_per_step", report.plan.dispatches},
      {"barriers_per_step", report.plan.barriers},
      {"peak_arena_bytes", report.plan.arena_bytes},
      {"host_us_per_step", report.host.microseconds_per_step},
      {"ranks", report.ranks},
      {"bytes_sent", report.exchange.bytes_sent},
      {"waiting_share",
       report.seconds > 0 ? std::chrono::duration<double>(report.exchange.waited).count() / report.seconds : 0}};
  // A device's name comes from its driver and may not be UTF-8.
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const halfstep::Bytes parts[] = {std::as_bytes(std::span(text))};
  halfstep::write_atomically(path, parts);
}

}  // namespace samples
