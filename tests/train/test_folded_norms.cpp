#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/device.h"
#include "harness/values.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "models/layers.h"

namespace halfstep {

// With a factor that was itself rounded to f16, all results of a channel would be off by the same.
TEST_CASE("a norm's factor is folded into weights of 16 bits without being rounded itself") {
  constexpr std::int64_t inputs = 64;
  constexpr std::int64_t outputs = 256;
  constexpr float factor = 1.33345F;  // 1.33301 in f16
  const reference::Array random = testing::uniform({inputs, outputs}, 1, 1, 2);
  const std::vector<float> kernel(random.values.begin(), random.values.end());
  const std::vector<float> ones(2 * inputs, 1);
  const TemporaryFolder folder;
  for (const bool convolution : {true, false}) {
    const Shape stored = convolution ? Shape{1, 1, inputs, outputs} : Shape{inputs, outputs};
    io::write_safetensors(folder.path() / "w", {{"w", "F32", stored, std::as_bytes(std::span(kernel))}}, {});
    Graph graph;
    const Tensor x = graph.input("x", convolution ? Shape{2, 1, 1, inputs} : Shape{2, inputs});
    const Tensor w = graph.root().parameter("w", stored, constant(0));
    const Tensor scale = graph.root().parameter("scale", {outputs}, constant(factor));
    const Tensor moved = graph.root().parameter("moved", {outputs}, constant(0));
    const RunningStatistics running{graph.root().state("mean", {outputs}, constant(0)),
                                    graph.root().state("variance", {outputs}, constant(1))};
    const Tensor y = batch_norm(convolution ? conv2d(x, w) : linear(x, w), scale, moved, running);
    for (const Precision& precision : {Precision::autocast(), Precision::mixed()}) {
      CAPTURE(precision.name);
      Predictor predictor = Predictor::compile(testing::device(), graph, y, precision);
      predictor.load_weights(folder.path() / "w", {.strict = false});
      const std::vector<float> got = predictor.run({{"x", std::span<const float>(ones)}});
      double error = 0;
      for (std::size_t o = 0; o < outputs; ++o) {
        double sum = 0;
        for (std::size_t i = 0; i < inputs; ++i) sum += double{kernel[i * outputs + o]};
        error += double{got[o]} / (sum * double{factor} / std::sqrt(1 + 1e-5)) - 1;
      }
      CHECK(std::abs(error / outputs) < 1e-4);
    }
  }
}

// The mean is large beside the deviation: weights and offset cancel, and rounded to 16 bits they would not.
TEST_CASE("a norm of a channel that hardly varies keeps its result in 16 bits") {
  struct Case {
    Precision precision;
    float weight;
    bool convolution = true;
  };
  Precision by_layer = Precision::mixed();
  by_layer.layer("block", DType::bf16);
  const TemporaryFolder folder;
  for (const Case& c :
       {Case{Precision::mixed(), 3.75F}, Case{Precision::mixed(), 37.5F}, Case{Precision::autocast(), 3.75F},
        Case{Precision::bfloat16(), 0.125F}, Case{Precision::float16(), 3.75F}, Case{Precision::float16(), 37.5F},
        Case{by_layer, 3.75F}, Case{Precision::float16(), 37.5F, false}, Case{by_layer, 3.75F, false}}) {
    CAPTURE(c.precision.name);
    CAPTURE(c.weight);
    CAPTURE(c.convolution);
    Graph graph;
    const Scope block = graph.root() / "block";
    const Tensor x = graph.input("x", {1, 1, 1, 8});
    const Tensor w = block.parameter("w", {1, 1, 8, 8}, constant(c.weight));
    const Tensor moved_by = block.parameter("moved_by", {8}, constant(0));
    const Tensor scale = block.parameter("scale", {8}, constant(1));
    const Tensor moved = block.parameter("moved", {8}, constant(1));
    const RunningStatistics running{block.state("mean", {8}, constant(8 * c.weight)),
                                    block.state("variance", {8}, constant(0))};
    const Tensor y = batch_norm(c.convolution ? conv2d(x, w) : relu(add(x, moved_by)), scale, moved, running);
    TrainerOptions options{.loss = mean(y)};
    options.precision = c.precision;
    options.precision.loss_scale = LossScale::none();
    options.groups = {{.pattern = "block/scale", .frozen = true}, {.pattern = "block/moved", .frozen = true}};
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    const std::vector<float> pixel(8, c.convolution ? 1 : 8 * c.weight);
    const std::map<std::string, Values> inputs{{"x", std::span<const float>(pixel)}};
    CHECK(Predictor::compile(trainer, graph, y).run(inputs)[1] == doctest::Approx(1).epsilon(0.01));
    trainer.save_weights(folder.path() / "all");
    Predictor predictor = Predictor::compile(testing::device(), graph, y, c.precision);
    predictor.load_weights(folder.path() / "all");
    CHECK(predictor.run(inputs)[1] == doctest::Approx(1).epsilon(0.01));
    trainer.step(inputs);
    trainer.finish();
    CHECK(trainer.report().loss == doctest::Approx(1).epsilon(0.01));
  }
}

TEST_CASE("a norm of one row is predicted and trained frozen, as one of several rows is") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "norm.safetensors";
  const std::vector<float> x{0.5F, -3, 2, 7, 1, -0.25F};
  const auto norm = [&](Graph& graph, std::int64_t rows) {
    const Tensor normed = models::batch_norm(graph.root() / "bn", graph.input("x", {rows, 3}));
    return mul(normed, graph.root().parameter("w", {3}, constant(1.5F)));
  };
  const auto options = [](Tensor y) {
    TrainerOptions result{.loss = mean(y)};
    result.precision = Precision::float32();
    return result;
  };
  const std::span<const float> all(x);
  Graph two;
  const Tensor of_two = norm(two, 2);
  Trainer trainer = Trainer::compile(testing::device(), two, options(of_two));
  for (int i = 0; i < 3; ++i) trainer.step({{"x", all}});
  trainer.save_weights(path);
  Graph one;
  const Tensor of_one = norm(one, 1);
  Predictor shared = Predictor::compile(trainer, one, of_one);
  Predictor predictor = Predictor::compile(testing::device(), one, of_one);
  predictor.load_weights(path);
  const std::vector<float> want = Predictor::compile(trainer, two, of_two).run({{"x", all}});
  for (std::size_t row = 0; row < 2; ++row) {
    const std::span<const float> of_row = std::span(want).subspan(3 * row, 3);
    const std::vector<float> wanted(of_row.begin(), of_row.end());
    CHECK(shared.run({{"x", all.subspan(3 * row, 3)}}) == wanted);
    CHECK(predictor.run({{"x", all.subspan(3 * row, 3)}}) == wanted);
  }
  TrainerOptions training = options(of_one);
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), one, training),
                       doctest::Contains("[batch_norm] expected more than one element a channel in training"), Error);
  training.groups = {{.pattern = "bn/*", .frozen = true}};
  Trainer frozen = Trainer::compile(testing::device(), one, training);
  frozen.load_weights(path);
  frozen.step({{"x", all.first(3)}});
  frozen.finish();
  CHECK(frozen.report().loss == doctest::Approx((want[0] + want[1] + want[2]) / 3));
}

}  // namespace halfstep
