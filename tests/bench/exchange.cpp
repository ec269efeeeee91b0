// The exchange between ranks: how fast it is, how much of it the backward pass hides, and a model of both.
#include <halfstep/halfstep.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/commands.h"
#include "bench/exchange_model.h"
#include "bench/models.h"
#include "samples/common/command_line.h"
#include "samples/common/ranks.h"
#include "samples/common/say.h"

namespace bench {
namespace {

using namespace halfstep;
using Clock = std::chrono::steady_clock;

struct ExchangeOptions {
  std::string model = "resnet20";
  PrecisionFlags precision;
  std::int64_t batch = 32;
  std::int64_t bucket_kib = 256;
  std::int64_t steps = 4;
  double share = 0.5;
  bool predict = false;
};

/// One of two ranks, of which the other does as this one.
class Twin final : public Exchange {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void begin_sum(std::span<float> values, const WireFormat& /*format*/) override {
    for (float& value : values) value *= 2;
    costs_.bytes_sent += values.size_bytes();  // half of the values, and half of the sums
  }
  void progress() override {}
  void wait() override {}
  void broadcast(std::span<std::byte> /*bytes*/, int /*root*/) override {}
  void barrier() override {}
  [[noreturn]] void abort(std::string_view message, int /*exit_code*/) override { throw Error(std::string(message)); }
  ExchangeCosts costs() const override { return costs_; }

 private:
  ExchangeCosts costs_;
};

/// The twin over a link: a sum is complete when its bytes have passed, after those of the sums before it.
class Slowed final : public Exchange {
 public:
  /// Seconds for each byte.
  explicit Slowed(double seconds) : seconds_(seconds) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void begin_sum(std::span<float> values, const WireFormat& format) override {
    twin_.begin_sum(values, format);
    const std::chrono::duration<double> passing(seconds_ * static_cast<double>(values.size_bytes()));
    free_ = std::max(free_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(passing);
  }
  void progress() override {}
  void wait() override { std::this_thread::sleep_until(free_); }
  void broadcast(std::span<std::byte> /*bytes*/, int /*root*/) override {}
  void barrier() override {}
  [[noreturn]] void abort(std::string_view message, int exit_code) override { twin_.abort(message, exit_code); }
  ExchangeCosts costs() const override { return twin_.costs(); }

 private:
  Twin twin_;
  double seconds_;
  Clock::time_point free_;
};

Trainer trainer_of(const ExchangeOptions& options, const Device& device, const Dataset& set, Ranks ranks) {
  Graph graph;
  Training training = model_of(options.model).build(graph, options.batch, 3);
  return Trainer::compile(device, graph,
                          {.loss = training.loss,
                           .metrics = std::move(training.metrics),
                           .optimizer = Adam{.rate = 1e-4F},
                           .ranks = std::move(ranks),
                           .precision = precision_of(options.precision),
                           .feed = std::move(training.feed),
                           .training_set = &set});
}

Times step_times(const ExchangeOptions& options, const Bench& bench, Trainer& trainer) {
  const Times times = bench.time([&] {
    for (std::int64_t i = 0; i < options.steps; ++i) trainer.step();
    trainer.finish();
  });
  const auto steps = static_cast<double>(options.steps);
  return {times.median / steps, times.least / steps, times.spread / steps};
}

using Json = nlohmann::ordered_json;

void note(Json& results, const std::string& name, const Times& times, const Json& figures = Json::object()) {
  Json row{{"name", name}, {"median_ms", times.median}, {"minimum_ms", times.least}, {"spread_ms", times.spread}};
  row.update(figures);
  std::string line;
  for (const auto& [key, value] : figures.items()) line += fmt::format("  {} {:.4g}", key, value.get<double>());
  samples::say("{:<58} {:>10.3f} ms, at least {:.3f}{}\n", name, times.median, times.least, line);
  results.push_back(row);
}

/// Sums over the ranks that mpirun started.
void measure_sums(const Bench& bench, Exchange& exchange, Json& results) {
  for (const DType type : {DType::f32, DType::f16}) {
    for (const std::size_t kib : {4UL, 64UL, 1024UL, 16384UL}) {
      std::vector<float> values = random_values(static_cast<std::int64_t>(kib) * 256);
      const std::uint64_t before = exchange.costs().bytes_sent;
      exchange.begin_sum(values, {type});
      exchange.wait();
      const auto sent = static_cast<double>(exchange.costs().bytes_sent - before);
      const Times times = bench.time([&] {
        std::ranges::fill(values, 1.0F);
        exchange.begin_sum(values, {type});
        exchange.wait();
      });
      note(results, fmt::format("sum of {} KiB over {} ranks, in {}", kib, exchange.size(), name(type)), times,
           {{"bytes_sent", sent}, {"sent_gbytes_per_second", sent / times.median / 1e6}});
    }
  }
}

/// Steps of the ranks that mpirun started, or of one process. Returns the least milliseconds: what others do on the
/// machine only adds to them.
double measure_step(const ExchangeOptions& options, const Bench& bench, const Ranks& ranks, const std::string& name,
                    Json& results, const std::function<Json(double)>& figures = {}) {
  const Dataset set = model_of(options.model).set(4 * options.batch * ranks.size());
  Trainer trainer = trainer_of(options, bench.device(), set, ranks);
  const Times times = step_times(options, bench, trainer);
  note(results, fmt::format("step {} {} batch {}, {}", options.model, options.precision.name, options.batch, name),
       times, figures ? figures(times.least) : Json::object());
  return times.least;
}

/// How long the backward pass takes the device, by its dispatches.
double backward_milliseconds(const ExchangeOptions& options, const Bench& bench) {
  const Dataset set = model_of(options.model).set(4 * options.batch);
  const Trainer trainer = trainer_of(options, bench.device(), set, {});
  const std::vector<DispatchCost> costs = trainer.inspect().profile(std::max(3, bench.repeats() / 4));
  const PlannedStep step = trainer.inspect().planned();
  double backward = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (step.dispatches[i].phase == "backward") backward += costs[i].milliseconds;
  }
  return backward;
}

/// Steps with a rank that is not there, over a link that takes `share` of the backward pass.
void measure_overlap(const ExchangeOptions& options, const Bench& bench, Json& results) {
  Ranks ranks;
  ranks.bucket_bytes = options.bucket_kib << 10;
  ranks.compare_every = 0;
  measure_step(options, bench, {}, "one rank", results);
  const double backward = backward_milliseconds(options, bench);
  ranks.exchange = std::make_shared<Twin>();
  const Dataset set = model_of(options.model).set(8 * options.batch);
  Trainer trainer = trainer_of(options, bench.device(), set, ranks);
  const std::uint64_t sent = ranks.exchange->costs().bytes_sent;
  trainer.step();
  const auto bytes = static_cast<double>(ranks.exchange->costs().bytes_sent - sent);
  const double link = options.share * backward;
  const double free = measure_step(options, bench, ranks, "two, over no link", results);
  const auto slowed = [&](std::int64_t bucket, const std::string& name) {
    ranks.bucket_bytes = bucket;
    ranks.exchange = std::make_shared<Slowed>(link / 1000 / bytes);
    measure_step(options, bench, ranks, name, results, [&](double least) {
      return Json{{"link_ms", link}, {"backward_ms", backward}, {"hidden", 1 - (least - free) / link}};
    });
  };
  slowed(options.bucket_kib << 10, "two, over a link, in buckets");
  slowed(std::int64_t{1} << 40, "two, over a link, in one bucket");
}

/// Efficiencies of the model in exchange_model.h, as they are in engine/dist/README.md.
void predict() {
  struct Network {
    const char* name;
    Link link;
  };
  constexpr Network networks[] = {
      {"1 Gbit/s", {0.125e9, 50e-6, 2e-6}}, {"10 Gbit/s", {1.25e9, 20e-6, 2e-6}}, {"100 Gbit/s", {12.5e9, 2e-6, 1e-6}}};
  struct Trained {
    const char* name;
    double parameters;
    double seconds;  ///< of a step on one device
  };
  constexpr Trained trained[] = {{"25.6 M parameters, 0.1 s", 25.6e6, 0.1}, {"124 M parameters, 0.25 s", 124e6, 0.25}};
  samples::say("| step of one device | link | wire | 8 | 64 | 256 | 1,024 devices |\n|---|---|---|---|---|---|---|\n");
  for (const Trained& model : trained) {
    for (const Network& network : networks) {
      constexpr double f32 = 4.0;
      constexpr double f16 = 2 + 1 / 128.0;
      const auto step = [&](double bytes) {
        return Step{model.seconds * 0.32, model.seconds * 0.64, model.seconds * 0.04, bytes * model.parameters,
                    bytes * (1 << 20)};
      };
      using Seconds = std::function<double(int ranks)>;
      const std::pair<const char*, Seconds> ways[] = {
          {"f32", [&](int ranks) { return step_seconds(step(f32), Algorithm::direct, ranks, network.link); }},
          {"f16", [&](int ranks) { return step_seconds(step(f16), Algorithm::direct, ranks, network.link); }},
          {"f32, sharded",
           [&](int ranks) {
             return sharded_step_seconds(step(f32), 2 * model.parameters, Algorithm::direct, ranks, network.link);
           }},
          {"f16, every 50 steps",
           [&](int ranks) { return local_step_seconds(step(f16), 50, Algorithm::direct, ranks, network.link); }}};
      for (const auto& [way, seconds] : ways) {
        samples::say("| {} | {} | {} |", model.name, network.name, way);
        for (const int ranks : {8, 64, 256, 1024}) samples::say(" {:.0f}% |", 100 * model.seconds / seconds(ranks));
        samples::say("\n");
      }
    }
  }
}

void run(const ExchangeOptions& options, const Bench& bench, const std::filesystem::path& json) {
  if (options.predict) {
    if (!json.empty()) fail("--json", "expected no file with --predict, which prints a table only, got one");
    return predict();
  }
  Json results = Json::array();
  Ranks ranks(samples::joined_ranks());
  if (ranks.size() > 1) {
    ranks.bucket_bytes = options.bucket_kib << 10;
    measure_sums(bench, *ranks.exchange, results);
    measure_step(options, bench, ranks, fmt::format("{} ranks", ranks.size()), results);
  } else {
    measure_overlap(options, bench, results);
  }
  if (json.empty() || !samples::is_first_rank()) return;
  const std::string text = Json{{"results", results}}.dump(2) + "\n";
  const Bytes part = std::as_bytes(std::span(text));
  write_atomically(json, std::span(&part, 1));
}

}  // namespace

Command add_exchange(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "exchange", "Under mpirun, sums over ranks and steps; else how much of a slow link the backward pass hides");
  const auto options = std::make_shared<ExchangeOptions>();
  command->add_option("--model", options->model, "What is trained")->check(trained_model())->capture_default_str();
  add_precision(*command, options->precision);
  command->add_option("--batch", options->batch, "Samples in a step of each rank")
      ->transform(samples::whole_number(1, 65536))
      ->capture_default_str();
  command->add_option("--bucket", options->bucket_kib, "KiB of gradients that are exchanged together")
      ->transform(samples::whole_number(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "Steps timed together")
      ->transform(samples::whole_number(1, 100000))
      ->capture_default_str();
  command->add_option("--share", options->share, "Of the backward pass's time, what the slow link takes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--predict", options->predict, "Print the model's predictions for 8 to 1,024 devices");
  command->parse_complete_callback([] { samples::expect_ranks(); });
  return {command, [options](const Bench& bench, const std::filesystem::path& json) { run(*options, bench, json); }};
}

}  // namespace bench
