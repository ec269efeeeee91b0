// Batch norm with statistics over all ranks.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "harness/device.h"
#include "harness/errors.h"
#include "models/layers.h"
#include "train/rank_exchange.h"
#include "train/rank_statistics.h"
#include "train/rank_threads.h"

namespace halfstep {

using testing::error_of;

namespace {

constexpr std::int64_t channels = 5;  // whose rows are padded

std::vector<float> random_values(std::size_t count, unsigned seed, float mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, 1);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// Two convolutions with norms, one of which finds the moments on its way, and a loss of given images and labels.
struct Network {
  Network(std::int64_t batch, const Precision& precision, std::int64_t accumulate, const Ranks& ranks,
          const std::string& recompute)
      : images(graph.input("images", {batch, 7, 5, 3})), labels(graph.input("labels", {batch}, DType::u32)) {
    const Scope root = graph.root();
    Tensor x = models::same_conv(root / "block" / "conv1", images, channels, 3, models::Bias::none);
    x = relu(models::batch_norm(root / "block" / "norm1", x));
    x = models::same_conv(root / "block" / "conv2", x, channels, 3);
    x = relu(models::batch_norm(root / "block" / "norm2", x));
    const Tensor logits = models::dense(root / "dense", flatten(x), 4);
    options = {.loss = cross_entropy(logits, labels),
               .optimizer = Sgd{.rate = 0.05F, .momentum = 0.9F},
               .accumulate = accumulate,
               .ranks = ranks,
               .recompute = recompute,
               .precision = precision,
               .seed = 5};
  }
  Trainer compiled() const { return Trainer::compile(testing::device(), graph, options); }

  Graph graph;
  Tensor images;
  Tensor labels;
  TrainerOptions options;
};

/// Samples of one step: micro-batches one after the other.
struct Samples {
  std::vector<float> images;
  std::vector<std::uint32_t> labels;

  static constexpr std::size_t size = 7 * 5 * 3;
  Samples(std::size_t count, unsigned seed) : images(random_values(count * size, seed, 0.5F)) {
    for (std::size_t i = 0; i < count; ++i) labels.push_back(static_cast<std::uint32_t>((i * 7 + seed) % 4));
  }
  /// Those at these places.
  Samples(const Samples& all, const std::vector<std::size_t>& places) {
    for (const std::size_t place : places) {
      const auto begin = all.images.begin() + static_cast<std::ptrdiff_t>(place * size);
      images.insert(images.end(), begin, begin + size);
      labels.push_back(all.labels[place]);
    }
  }
  void step(Trainer& trainer) const {
    trainer.step({{"images", std::span<const float>(images)}, {"labels", std::span<const std::uint32_t>(labels)}});
  }
};

/// Everything that was trained, by name, and the mean loss.
using Result = std::map<std::string, std::vector<float>>;

Result result_of(Trainer& trainer) {
  Result result;
  for (const std::string name : {"block/conv1/weight", "block/conv2/weight", "block/norm1/weight", "block/norm1/bias",
                                 "block/norm2/weight", "block/norm1/running_mean", "block/norm1/running_var",
                                 "block/norm2/running_mean", "block/norm2/running_var", "dense/weight"}) {
    result[name] = trainer.parameter(name);
  }
  result["loss"] = {static_cast<float>(trainer.take_totals().mean_loss)};
  return result;
}

void check_near(const Result& got, const Result& wanted, double tolerance) {
  for (const auto& [name, values] : wanted) {
    CAPTURE(name);
    double largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(got.at(name)[i]) - static_cast<double>(values[i])));
    }
    CHECK(largest < tolerance);
  }
}

/// y = batch_norm(x w + z) over rows, and loss = mean(r y y): in double, of {rows, channels}.
struct Formula {
  std::vector<float> x, z, r;

  double loss(const std::vector<double>& w, const std::vector<double>& gamma, const std::vector<double>& beta) const {
    const std::size_t c = w.size();
    const std::size_t rows = x.size() / c;
    double sum = 0;
    for (std::size_t j = 0; j < c; ++j) {
      std::vector<double> h;
      for (std::size_t i = j; i < x.size(); i += c) h.push_back(double{x[i]} * w[j] + double{z[i]});
      double mean = 0, variance = 0;
      for (const double value : h) mean += value / static_cast<double>(rows);
      for (const double value : h) variance += (value - mean) * (value - mean) / static_cast<double>(rows);
      for (std::size_t i = 0; i < rows; ++i) {
        const double y = gamma[j] * (h[i] - mean) / std::sqrt(variance + 1e-5) + beta[j];
        sum += double{r[i * c + j]} * y * y;
      }
    }
    return sum / static_cast<double>(x.size());
  }
};

}  // namespace

TEST_CASE("norms over all ranks train as one process with the whole batch does") {
  struct Variant {
    std::size_t ranks, micro_batches;
    Precision precision;
    std::string recompute;
    double tolerance;
  };
  Precision mixed = Precision::mixed();
  mixed.loss_scale.initial = 64;  // a rank's gradients are larger than those of the whole batch
  for (const Variant& variant : {Variant{3, 1, Precision::float32(), "", 1e-4},
                                 {2, 2, Precision::float32(), "block", 1e-4},
                                 {2, 1, mixed, "", 1e-2}}) {
    const auto& [ranks, micro_batches, precision, recompute, tolerance] = variant;
    CAPTURE(ranks);
    CAPTURE(precision.name);
    constexpr std::size_t batch = 3;  // of a rank's micro-batch
    constexpr unsigned steps = 5;
    // Micro-batch i of rank r has samples from (i ranks + r) batch on: one process finds those of all ranks together.
    Trainer one =
        Network(static_cast<std::int64_t>(batch * ranks), precision, static_cast<std::int64_t>(micro_batches), {}, "")
            .compiled();
    std::vector<Samples> samples;
    for (unsigned step = 0; step < steps; ++step) {
      samples.emplace_back(batch * ranks * micro_batches, step);
      samples.back().step(one);
    }
    const Result wanted = result_of(one);
    const std::vector<Result> got =
        testing::results_of_ranks<Result>(static_cast<int>(ranks), [&](int rank, const Ranks& as) {
          Ranks own = as;
          own.sync_batch_norm = true;
          own.compare_every = 1;
          own.bucket_bytes = 1;
          Trainer trainer =
              Network(batch, precision, static_cast<std::int64_t>(micro_batches), own, recompute).compiled();
          for (const Samples& all : samples) {
            std::vector<std::size_t> places;
            for (std::size_t i = 0; i < micro_batches * batch; ++i) {
              places.push_back((i / batch * ranks + static_cast<std::size_t>(rank)) * batch + i % batch);
            }
            Samples(all, places).step(trainer);
          }
          return result_of(trainer);
        });
    for (const Result& result : got) {
      CHECK(result == got.front());
      check_near(result, wanted, tolerance);
    }
  }
}

TEST_CASE("the gradient through norms over all ranks is that of the formula in double") {
  constexpr std::size_t ranks = 3;
  constexpr std::size_t rows = 7;  // of a rank
  const std::vector<double> w{0.5, -1, 1.5, 0.25, 2}, gamma{1, 0.5, -1, 2, 1.5}, beta{0.1, -0.2, 0, 0.3, -1};
  const Formula all{random_values(ranks * rows * channels, 1), random_values(ranks * rows * channels, 2, 10),
                    random_values(ranks * rows * channels, 3, 0.5F)};
  const auto floats = [](const std::vector<double>& values) {
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<Result> got = testing::results_of_ranks<Result>(ranks, [&](int rank, const Ranks& as) {
    Graph graph;
    const Shape shape{rows, channels};
    const Tensor x = graph.input("x", shape);
    const Tensor z = graph.input("z", shape);
    const Tensor r = graph.input("r", shape);
    const Tensor h = add(mul(x, graph.root().parameter("w", {channels}, constant(0))), z);
    const Tensor y = models::batch_norm(graph.root() / "norm", h);
    TrainerOptions options{
        .loss = mean(mul(r, mul(y, y))), .optimizer = Sgd{.rate = 1}, .precision = Precision::float32()};
    options.ranks = as;
    options.ranks.sync_batch_norm = true;
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    trainer.set_parameter("w", floats(w));
    trainer.set_parameter("norm/weight", floats(gamma));
    trainer.set_parameter("norm/bias", floats(beta));
    const auto part = [&](const std::vector<float>& values) {
      return std::span(values).subspan(static_cast<std::size_t>(rank) * rows * channels, rows * channels);
    };
    trainer.step({{"x", part(all.x)}, {"z", part(all.z)}, {"r", part(all.r)}});
    return Result{{"w", trainer.parameter("w")},
                  {"norm/weight", trainer.parameter("norm/weight")},
                  {"norm/bias", trainer.parameter("norm/bias")}};
  });
  const auto check = [&](const std::string& name, const std::vector<double>& before,
                         const std::function<double(const std::vector<double>&)>& loss) {
    CAPTURE(name);
    for (std::size_t j = 0; j < before.size(); ++j) {
      constexpr double step = 1e-5;
      std::vector<double> more = before, less = before;
      more[j] += step;
      less[j] -= step;
      const double wanted = (loss(more) - loss(less)) / (2 * step);
      for (const Result& result : got) {
        CHECK(before[j] - double{result.at(name)[j]} == doctest::Approx(wanted).epsilon(1e-4).scale(0.1));
      }
    }
  };
  check("w", w, [&](const std::vector<double>& moved) { return all.loss(moved, gamma, beta); });
  check("norm/weight", gamma, [&](const std::vector<double>& moved) { return all.loss(w, moved, beta); });
  check("norm/bias", beta, [&](const std::vector<double>& moved) { return all.loss(w, gamma, moved); });
}

TEST_CASE("moments of ranks are merged without cancellation, and means are means") {
  constexpr int ranks = 4;
  constexpr std::size_t rows = 9;
  const std::vector<float> values = random_values(ranks * rows, 4, 10000);
  const auto moments = [](std::span<const float> of) {
    double mean = 0, squares = 0;
    for (const float value : of) mean += double{value} / static_cast<double>(of.size());
    for (const float value : of) squares += (double{value} - mean) * (double{value} - mean);
    return std::vector<float>{static_cast<float>(mean), static_cast<float>(squares)};
  };
  const std::vector<float> wanted = moments(values);
  for (const std::vector<float>&got :
       testing::results_of_ranks<std::vector<float>>(ranks, [&](int rank, const Ranks&as) {
         std::vector<float> own = moments(std::span(values).subspan(static_cast<std::size_t>(rank) * rows, rows));
         std::vector<float> mean{static_cast<float>(rank)};
         train::exchange_statistics(*as.exchange, {.kind = plan::OverRanks::moments, .rows = rows}, own);
         train::exchange_statistics(*as.exchange, {.kind = plan::OverRanks::means}, mean);
         own.push_back(mean.front());
         return own;
       })) {
    CHECK(got[0] == doctest::Approx(wanted[0]).epsilon(1e-6));
    CHECK(got[1] == doctest::Approx(wanted[1]).epsilon(1e-2));  // means are f32
    CHECK(got[2] == 1.5F);
  }
}

TEST_CASE("norms over all ranks are not for ranks of which some ignore more labels than others") {
  // Of two micro-batches of each rank, those that are computed at once must have as many labels that count.
  const auto error_with = [](const std::vector<std::vector<std::size_t>>& ignored) {
    const std::vector<std::string> errors = testing::results_of_ranks<std::string>(2, [&](int rank, const Ranks& as) {
      Ranks own = as;
      own.sync_batch_norm = true;
      Trainer trainer = Network(4, Precision::float32(), 2, own, "").compiled();
      Samples samples(8, static_cast<unsigned>(rank));
      for (const std::size_t i : ignored[static_cast<std::size_t>(rank)]) samples.labels[i] = ignored_label;
      return error_of([&] {
        samples.step(trainer);
        trainer.finish();
      });
    });
    CHECK(errors[0] == errors[1]);
    return errors[0];
  };
  CHECK(error_with({{}, {}}).empty());
  CHECK(error_with({{0, 4, 5}, {3, 6, 7}}).empty());
  CHECK(error_with({{}, {6}}) ==
        "[trainer] expected as many labels that count on each rank with Ranks::sync_batch_norm, got 4 on rank 0 and 3 "
        "on rank 1. Hint: leave sync_batch_norm out, or ignore as many labels on each");
  CHECK(!error_with({{0}, {4}}).empty());
}

TEST_CASE("norms over all ranks are not for unequal parts, and asked for by all ranks or none") {
  const auto errors = [](const std::function<void(int, Ranks&)>& change) {
    return testing::results_of_ranks<std::string>(2, [&](int rank, const Ranks& as) {
      Ranks own = as;
      own.sync_batch_norm = true;
      change(rank, own);
      return error_of([&] { static_cast<void>(Network(2, Precision::mixed(), 2, own, "").compiled()); });
    });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  for (const std::string& error : errors([](int rank, Ranks&ranks) { ranks.sync_batch_norm = rank == 0; })) {
    CHECK(has(error, "one statistics of batch norm on all ranks, got those of all ranks on rank 0"));
  }
  CHECK(errors([](int, Ranks&) {}) == std::vector<std::string>(2));
  const Dataset set;
  testing::on_ranks(2, [&](int, const Ranks& as) {
    TrainerOptions options;
    options.training_set = &set;
    options.ranks = as;
    options.ranks.sync_batch_norm = true;
    options.ranks.balance.shares = {2, 1};
    CHECK(has(error_of([&] { train::check_ranks(options); }), "with Ranks::sync_batch_norm, got a Balance"));
  });
}

}  // namespace halfstep
