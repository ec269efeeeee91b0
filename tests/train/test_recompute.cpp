#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include "harness/device.h"
#include "models/layers.h"
#include "train/small_training.h"
#include "train/text_training.h"

namespace halfstep {
namespace {

Tensor block(const Scope& scope, Tensor x) {
  Tensor y = relu(models::batch_norm(scope / "bn1", models::same_conv(scope / "conv1", x, 7, 3, models::Bias::none)));
  y = dropout(y, 0.25F);
  y = models::batch_norm(scope / "bn2", models::same_conv(scope / "conv2", y, 7, 3));
  return relu(add(y, x));
}

Trainer trainer(const Precision& precision, const std::string& recompute, std::int64_t micro_batches) {
  Graph graph;
  const Tensor images = graph.input("images", {8, 6, 5, 1});
  const Tensor labels = graph.input("labels", {8}, DType::u32);
  Tensor x = relu(models::same_conv(graph.root() / "stem", images, 7, 3));
  for (int i = 0; i < 3; ++i) x = block(graph.root() / "blocks" / std::to_string(i), x);
  const Tensor logits = models::dense(graph.root() / "head", global_average_pool(x), 3);
  return Trainer::compile(testing::device(), graph,
                          {.loss = cross_entropy(logits, labels),
                           .optimizer = Adam{.rate = 0.01F},
                           .accumulate = micro_batches,
                           .recompute = recompute,
                           .precision = precision,
                           .feed = Feed{.samples = images, .labels = labels},
                           .training_set = &testing::toy_set()});
}

std::vector<float> everything(Trainer& trainer) {
  std::vector<std::string> names{"stem/weight", "stem/bias", "head/weight", "head/bias"};
  for (const char* name : {"conv1/weight", "bn1/weight", "bn1/bias", "bn1/running_mean", "bn1/running_var",
                           "conv2/weight", "conv2/bias", "bn2/running_mean"}) {
    for (int i = 0; i < 3; ++i) names.push_back("blocks/" + std::to_string(i) + "/" + name);
  }
  return testing::all_weights(trainer, names);
}

}  // namespace

TEST_CASE("a step that computes activations again ends on the same bits") {
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    if (precision.parameters == DType::f16) {
      precision.rounding.activations = Rounding::stochastic;
      precision.rounding.gradients = Rounding::stochastic;
    }
    for (const std::int64_t micro_batches : {1, 2}) {
      CAPTURE(precision.name);
      Trainer kept = trainer(precision, "", micro_batches);
      Trainer lean = trainer(precision, "blocks/?", micro_batches);
      for (int i = 0; i < 12; ++i) {
        kept.step();
        lean.step();
      }
      CHECK(everything(lean) == everything(kept));
      CHECK(lean.report().loss == kept.report().loss);
      CHECK(lean.report().applied == kept.report().applied);
    }
  }
}

TEST_CASE("the plan has the memory with and without, and the price") {
  Trainer kept = trainer(Precision::mixed(), "", 1);
  Trainer lean = trainer(Precision::mixed(), "blocks/?", 1);
  const PlanSummary& summary = lean.inspect().summary();
  CHECK(summary.arena_bytes_kept == kept.inspect().summary().arena_bytes);
  CHECK(kept.inspect().summary().arena_bytes_kept == kept.inspect().summary().arena_bytes);
  CHECK(summary.arena_bytes < summary.arena_bytes_kept);
  CHECK(summary.flops - summary.recomputed_flops == doctest::Approx(kept.inspect().summary().flops));
  // Fused operators do not store values that nothing reads later.
  CHECK(summary.bytes_moved - summary.recomputed_bytes_moved <= kept.inspect().summary().bytes_moved);
  CHECK(summary.bytes_moved > kept.inspect().summary().bytes_moved);
  CHECK(summary.recomputed_flops > 0);
  CHECK(kept.inspect().summary().recomputed_flops == 0);
  CHECK(lean.inspect().plan().find("would take " + std::to_string(summary.arena_bytes_kept)) != std::string::npos);
  CHECK(kept.inspect().plan().find("recomputed") == std::string::npos);
}

TEST_CASE("layers of transformers are computed again on the same bits, in less memory") {
  const Dataset set = testing::texts(30);
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    CAPTURE(precision.name);
    testing::TextSettings settings{.dropout = 0.2F, .precision = precision};
    Trainer kept = testing::text_trainer(set, settings);
    settings.change = [](TrainerOptions& made) { made.recompute = "bert/encoder/layer/*"; };
    Trainer lean = testing::text_trainer(set, settings);
    for (int i = 0; i < 10; ++i) {
      kept.step();
      lean.step();
    }
    CHECK(testing::text_weights(lean) == testing::text_weights(kept));
    CHECK(lean.report().loss == kept.report().loss);
    CHECK(lean.inspect().summary().arena_bytes < kept.inspect().summary().arena_bytes);
    CHECK(lean.inspect().summary().arena_bytes_kept == kept.inspect().summary().arena_bytes);
  }
}

TEST_CASE("the recorder sees what is computed again once") {
  Trainer lean = trainer(Precision::mixed(), "blocks/?", 1);
  Trainer kept = trainer(Precision::mixed(), "", 1);
  for (Trainer* trainer : {&lean, &kept}) trainer->inspect().watch("blocks/1/conv1/*");
  lean.step();
  kept.step();
  lean.finish();
  kept.finish();
  CHECK(lean.inspect().take_records().size() == kept.inspect().take_records().size());
}

}  // namespace halfstep
