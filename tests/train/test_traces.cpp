// Tensors of a step that are kept for whoever asks for them.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "harness/device.h"
#include "harness/values.h"
#include "host/temporary_folder.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

/// Attention, a norm and a split, which all have several results.
struct ManyResults {
  Graph graph;
  Tensor x = graph.input("x", {2, 2, 4, 8});
  Tensor q = mul(x, graph.root().parameter("w", {8}, constant(0.5F)));
  Tensor attended = attention(q, q, x);
  Tensor normal = layer_norm(attended, graph.root().parameter("weight", {8}, constant(1)),
                             graph.root().parameter("bias", {8}, constant(0)));
  std::vector<Tensor> parts = split(normal, {3, 5}, 3);
  std::vector<float> values;

  ManyResults() {
    const reference::Array numbers = testing::uniform(x.shape(), 1);
    values.assign(numbers.values.begin(), numbers.values.end());
  }

  Trainer trainer() const {
    return Trainer::compile(testing::device(), graph,
                            {.loss = add(sum(mul(parts[0], parts[0])), sum(sin(parts[1]))),
                             .optimizer = Sgd{.rate = 0},
                             .precision = Precision::float32(),
                             .trace = "*"});
  }

  /// What a predictor makes of the same weights.
  std::vector<float> predicted(const Trainer& trainer, Tensor output) const {
    return Predictor::compile(trainer, graph, output).run({{"x", std::span<const float>(values)}});
  }
};

}  // namespace

TEST_CASE("a trace has what the step computed with, and of a parameter's gradient the mean over micro-batches") {
  Graph graph;
  const Tensor w = graph.root().parameter("w", {4, 3}, constant(1));
  const Tensor rows = reshape(w, {2, 2, 3});
  const Tensor x = graph.input("x", {2, 2, 3});
  Trainer trainer = Trainer::compile(testing::device(), graph,
                                     {.loss = sum(mul(rows, x)),
                                      .optimizer = Sgd{.rate = 1},
                                      .accumulate = 2,
                                      .precision = Precision::float32(),
                                      .trace = "*"});
  std::vector<float> values(24, 2);
  std::fill(values.begin() + 12, values.end(), 4.0F);
  trainer.step({{"x", std::span<const float>(values)}});
  CHECK(trainer.parameter("w") == std::vector<float>(12, -2));
  CHECK(trainer.inspect().trace(rows.name()) == std::vector<float>(12, 1));
  CHECK(trainer.inspect().trace("x") == std::vector<float>(12, 4));
  CHECK(trainer.inspect().trace("w.gradient") == std::vector<float>(12, 3));
}

TEST_CASE("each result of an operator that has several can be traced by its name") {
  const ManyResults model;
  Trainer trainer = model.trainer();
  trainer.step({{"x", std::span<const float>(model.values)}});
  for (const Tensor& tensor : {model.q, model.attended, model.normal, model.parts[0], model.parts[1]}) {
    CAPTURE(tensor.name());
    const std::vector<float> got = trainer.inspect().trace(tensor.name());
    const std::vector<float> want = model.predicted(trainer, tensor);
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-5));
  }
}

TEST_CASE("there is no trace before the first step, also of a trainer that goes on from a file") {
  const TemporaryFolder folder;
  testing::Pull saved(5, 1, Sgd{.rate = 0.5F}, Precision::float32());
  saved.step(3);
  saved.trainer().save(folder.path() / "saved");
  testing::Pull traced(5, 1, Sgd{.rate = 0.5F}, Precision::float32(), 5,
                       [](TrainerOptions& options) { options.trace = "*"; });
  const auto no_trace = [&] {
    CHECK_THROWS_WITH_AS(traced.trainer().inspect().trace("w.gradient"), doctest::Contains("[trace] expected"), Error);
  };
  no_trace();
  traced.trainer().load(folder.path() / "saved");
  no_trace();
  traced.step(3);
  CHECK(traced.trainer().inspect().trace("w.gradient") == std::vector<float>(5, 3));
}

}  // namespace halfstep
