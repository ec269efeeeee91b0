// Tests convolutions by Winograd's algorithm, whichever kernel the rule prefers.
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "ops/gemm/gemm_choice.h"
#include "ops/gemm/winograd.h"
#include "plan/program.h"
#include "reference/conv2d.h"
#include "reference/elementwise.h"
#include "tune/trial_run.h"
#include "tune/tuner.h"

using namespace halfstep;
using testing::Check;
using testing::uniform;

namespace {

struct Case {
  Shape images;
  Shape weight;
  Conv2dOptions options;
};

/// One pixel of result, odd and even extents, each padding; one channel, whole quads or not, more than a tile.
const std::vector<Case> cases{
    {{2, 9, 7, 6}, {3, 3, 6, 70}, {.padding = {1, 1}}},  {{1, 3, 3, 1}, {3, 3, 1, 1}, {}},
    {{2, 1, 2, 3}, {3, 3, 3, 6}, {.padding = {1, 1}}},   {{3, 8, 5, 64}, {3, 3, 64, 3}, {.padding = {0, 2}}},
    {{1, 6, 10, 3}, {3, 3, 3, 64}, {.padding = {2, 0}}}, {{2, 5, 6, 70}, {3, 3, 70, 6}, {.padding = {2, 1}}},
    {{1, 4, 5, 5}, {3, 3, 5, 4}, {.padding = {4, 3}}},
};

plan::Target by_winograd(plan::Target target) {
  target.gemm_kernels = "winograd";
  return target;
}

/// The same without the device's limits.
plan::Target without_limits(plan::Target target) {
  const plan::Target usual;
  target.max_rounds = usual.max_rounds;
  target.max_groups = usual.max_groups;
  target.max_storage_range = usual.max_storage_range;
  target.max_storage_buffers = 8;
  target.part_bytes = 0;
  return target;
}

std::vector<plan::Target> targets() {
  std::vector<plan::Target> all;
  for (const plan::Target& target : testing::product_targets()) all.push_back(by_winograd(target));
  return all;
}

Shape output(const Case& c) {
  return ops::Convolution{c.images, c.weight, c.options}.output("test");
}

/// Whether a target binds 16 matrices, of tiles of `result` or of one tap's weights, and has a workgroup for each quad.
bool fits(const plan::Target& target, const Case& c, const Shape& result) {
  const auto quads = [](std::int64_t channels) { return (channels + 3) / 4; };
  const std::int64_t in = c.weight[2];
  const std::int64_t out = c.weight[3];
  const std::int64_t tiles = result[0] * ((result[1] + 1) / 2) * ((result[2] + 1) / 2);
  const std::int64_t most = std::max(tiles * std::max(quads(in), quads(out)), in * quads(out));
  const auto all = static_cast<std::uint64_t>(16 * most);
  return all <= std::uint64_t{target.max_groups[0]} * target.max_groups[1] && 16 * all <= target.max_storage_range &&
         (target.part_bytes == 0 || 16 * all <= target.part_bytes);
}

std::string text(const Case& c) {
  return fmt::format("{} with {} padding {} {}", to_string(c.images), to_string(c.weight), c.options.padding[0],
                     c.options.padding[1]);
}

Check forward(const Case& c) {
  return {.name = "conv2d " + text(c),
          .build = [=](std::span<const Tensor> x) { return conv2d(x[0], x[1], c.options); },
          .inputs = {{uniform(c.images, 1)}, {uniform(c.weight, 2)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::conv2d(x[0], x[1], c.options); },
          .arithmetic = 2e-6,
          .dtypes = {DType::f32},
          .targets = targets()};
}

Check data_gradient(const Case& c) {
  Check check = forward(c);
  check.name = "data gradient of " + check.name;
  check.build = [=](std::span<const Tensor> x) { return ops::conv2d_data_gradient(x[0], x[1], c.images, c.options); };
  check.inputs[0] = {uniform(output(c), 1)};
  check.reference = [=](std::span<const reference::Array> x) {
    return reference::conv2d_data_gradient(x[0], x[1], c.images, c.options);
  };
  return check;
}

plan::Program program_of(const Check& check, const plan::Target& target, DType dtype = DType::f32) {
  Graph graph = testing::settled_graph();
  std::vector<Tensor> inputs;
  for (const auto& operand : check.inputs)
    inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), operand.values.shape, dtype));
  check.build(inputs);
  plan::ProgramBuilder builder(target);
  for (const Tensor& input : inputs) builder.values().bind(input.id(), builder.tensor("x", input.type()));
  for (const graph::Node& node : graph.ir().nodes) builder.lower(graph.ir(), node);
  return builder.finish();
}

std::ptrdiff_t dispatches_of_transforms(const plan::Program& program) {
  return std::ranges::count_if(program.dispatches,
                               [](const auto& dispatch) { return dispatch.shader.starts_with("winograd."); });
}

/// Which of a product's candidates Winograd's algorithm is; -1: none.
std::ptrdiff_t place_among_candidates(const plan::Program& program) {
  const auto& candidates = program.choices.front().candidates;
  const auto found = std::ranges::find(candidates, "winograd", &plan::Candidate::name);
  return found == candidates.end() ? -1 : found - candidates.begin();
}

/// The largest difference of a trial's result from `expected`.
double largest_error(const plan::Trial& trial, const plan::Target& target, const std::vector<double>& expected) {
  tune::TrialRun run(testing::context(), *testing::pipelines(), target, trial);
  run.run();
  const std::vector<float> got = run.result();
  REQUIRE(got.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(got[i]) - expected[i]));
  return largest;
}

std::vector<float> floats(const reference::Array& array) {
  return {array.values.begin(), array.values.end()};
}

reference::Array in_f32(const reference::Array& array) {
  const std::vector<float> rounded = floats(array);
  return {array.shape, std::vector<double>(rounded.begin(), rounded.end())};
}

}  // namespace

TEST_CASE("Winograd's algorithm computes convolutions") {
  for (const Case& c : cases) {
    testing::check_operator(forward(c));
    for (const plan::Target& target : targets()) {
      const int wanted = fits(target, c, output(c)) ? 3 : 0;
      CHECK(dispatches_of_transforms(program_of(forward(c), target)) == wanted);
    }
  }
}

TEST_CASE("Winograd's algorithm computes data gradients") {
  for (const Case& c : cases) {
    testing::check_operator(data_gradient(c));
    for (const plan::Target& target : targets()) {
      const int wanted = fits(target, c, c.images) ? 3 : 0;
      CHECK(dispatches_of_transforms(program_of(data_gradient(c), target)) == wanted);
    }
  }
}

TEST_CASE("the result of Winograd's algorithm takes a bias, and what follows, on its way") {
  for (const Case& c : cases) {
    Check check = forward(c);
    check.name += " with a bias, a residual and an activation";
    check.build = [=](std::span<const Tensor> x) { return relu(add(conv2d(x[0], x[1], c.options, x[2]), x[3])); };
    check.inputs.push_back({uniform(Shape{c.weight[3]}, 3)});
    check.inputs.push_back({uniform(output(c), 4)});
    check.reference = [=](std::span<const reference::Array> x) {
      const auto sum = [](double a, double b) { return a + b; };
      const reference::Array biased = reference::zip(reference::conv2d(x[0], x[1], c.options), x[2], sum);
      return reference::map(reference::zip(biased, x[3], sum), [](double v) { return std::max(v, 0.0); });
    };
    testing::check_operator(check);
    plan::Target target = targets().front();
    target.max_storage_buffers = std::max(target.max_storage_buffers, 8U);
    if (!fits(target, c, output(c))) continue;
    const plan::Program program = program_of(check, target);
    CHECK(dispatches_of_transforms(program) == 3);
    CHECK(program.dispatches.back().shader == "winograd.result.f32");
  }
}

TEST_CASE("Winograd's algorithm is only for what it computes, in matrices of limited size") {
  const plan::Target own = targets().front();
  const Case usual{{1, 12, 12, 8}, {3, 3, 8, 8}, {.padding = {1, 1}}};
  const auto is_offered = [&](const Case& c, const plan::Target& target = by_winograd(testing::context().target()),
                              DType dtype = DType::f32) {
    return dispatches_of_transforms(program_of(forward(c), target, dtype)) == 3;
  };
  CHECK(is_offered(usual));
  CHECK_FALSE(is_offered(usual, own, DType::f16));
  CHECK_FALSE(is_offered(usual, own, DType::bf16));
  for (const Conv2dOptions& options : {Conv2dOptions{.stride = {1, 2}}, {.dilation = {2, 1}}, {.dilation = {2, 2}}})
    CHECK_FALSE(is_offered({usual.images, usual.weight, options}));
  CHECK_FALSE(is_offered({usual.images, {3, 3, 4, 8}, {.groups = 2}}));
  CHECK_FALSE(is_offered({usual.images, {1, 9, 8, 8}, {}}));
  CHECK_FALSE(is_offered({usual.images, {3, 2, 8, 8}, {}}));
  // 36 tiles of 2 quads, 16 times: 18,432 bytes.
  plan::Target limited = own;
  limited.max_storage_range = 18'432;
  CHECK(is_offered(usual, limited));
  limited.max_storage_range = 18'431;
  CHECK_FALSE(is_offered(usual, limited));
  limited = own;
  limited.part_bytes = 16'384;
  CHECK_FALSE(is_offered(usual, limited));
  // A workgroup for each of 1,152 quads.
  limited = own;
  limited.max_groups = {36, 32, 1};
  CHECK(is_offered(usual, limited));
  limited.max_groups = {36, 31, 1};
  CHECK_FALSE(is_offered(usual, limited));
  // 2^27 bytes, and one tile more.
  limited = without_limits(own);
  limited.max_storage_range = 1U << 30;
  CHECK(is_offered({{1, 512, 512, 32}, {3, 3, 32, 4}, {.padding = {1, 1}}}, limited));
  CHECK_FALSE(is_offered({{1, 512, 513, 32}, {3, 3, 32, 4}, {.padding = {1, 1}}}, limited));
  // The same bits on every device: by one algorithm.
  const plan::Target device = without_limits(testing::context().target());
  CHECK(place_among_candidates(program_of(forward(usual), plan::reproducible(device))) == -1);
}

TEST_CASE("on a software driver Winograd's algorithm is taken where it was measured to be faster") {
  plan::Target target = without_limits(testing::context().target());
  target.cpu = true;
  target.subgroups = {.size = 8, .shuffle = true, .broadcast = true};
  target.gemm_kernels.clear();
  const auto place = [&](std::int64_t channels) {
    return place_among_candidates(
        program_of(forward({{4, 32, 32, channels}, {3, 3, channels, channels}, {.padding = {1, 1}}}), target));
  };
  for (const bool uniform : {false, true}) {
    target.uniform_loads = uniform;
    CHECK(place(256) == 0);
    CHECK(place(64) > 0);
  }
  target.uniform_loads = false;
  target.subgroups.size = 4;
  CHECK(place(64) == 0);
  CHECK(place(32) > 0);
}

TEST_CASE("on a GPU Winograd's algorithm is timed where it may cost less than tiles") {
  plan::Target target = without_limits(testing::context().target());
  target.cpu = false;
  target.max_invocations = 1024;
  target.shared_memory_bytes = 65536;
  target.compute_units = 60;
  target.wanted_groups = 240;
  target.gemm_kernels.clear();
  const auto place = [&](std::int64_t extent, std::int64_t channels) {
    const Case c{{32, extent, extent, channels}, {3, 3, channels, channels}, {.padding = {1, 1}}};
    CHECK(place_among_candidates(program_of(data_gradient(c), target)) ==
          place_among_candidates(program_of(forward(c), target)));
    return place_among_candidates(program_of(forward(c), target));
  };
  CHECK(place(14, 256) == 1);
  CHECK(place(56, 16) == 3);
}

// It is 0.36 of that of one long sum, and twice that of the sums of a driver with few loop rounds, which are cut up.
TEST_CASE("the error of Winograd's algorithm is a few times that of direct sums at most") {
  const Case c{{2, 13, 14, 64}, {3, 3, 64, 64}, {.padding = {1, 1}}};
  const reference::Array images = in_f32(uniform(c.images, 1));
  const reference::Array weight = in_f32(uniform(c.weight, 2));
  const reference::Array expected = reference::conv2d(images, weight, c.options);
  plan::Trial trial;
  trial.inputs = {{DType::f32, c.images}, {DType::f32, c.weight}};
  trial.values = {floats(images), floats(weight)};
  trial.output = {DType::f32, output(c)};
  trial.lower = [&](plan::Lowering& out) { ops::lower_conv2d(out, {c.images, c.weight, c.options}); };
  for (plan::Target target : testing::product_targets()) {
    if (!fits(target, c, output(c))) continue;
    target.gemm_kernels = "tile32";
    const double direct = largest_error(trial, target, expected.values);
    const double error = largest_error(trial, by_winograd(target), expected.values);
    MESSAGE("direct " << direct << ", Winograd " << error);
    CHECK(error > 0);
    CHECK(error < 4 * direct);
  }
}

TEST_CASE("Winograd's algorithm is admitted by its error") {
  // 16 matrices of 105 tiles of 18 quads.
  if (!testing::device_takes(30'240, 483'840)) return;
  for (const std::string kind : {"gemm patches_row f32 f32", "gemm patches_col f32 f32"}) {
    CHECK(
        tune::check(testing::context(), *testing::pipelines(), testing::context().target(), kind, "winograd").empty());
    const std::vector<plan::Trial> checks = ops::gemm_checks(kind);
    const auto uses = [&](const plan::Trial& trial) {
      plan::ProgramBuilder builder(by_winograd(testing::context().target()));
      std::vector<plan::TensorId> inputs;
      for (const TensorType& type : trial.inputs) inputs.push_back(builder.tensor("x", type));
      plan::Lowering lowering(builder, "test", inputs, {builder.tensor("y", trial.output)});
      trial.lower(lowering);
      return dispatches_of_transforms(builder.finish()) == 3;
    };
    CHECK(std::ranges::count_if(checks, uses) == 2);
    // Sums of numbers that have only 12 bits, as a transform that rounded would leave, would be refused.
    plan::Trial rough = checks.back();
    CHECK(rough.allowed_difference > 0);
    for (float& value : rough.values[0]) value = std::round(value * 0x1p11F) * 0x1p-11F;
    const std::vector<double> expected(rough.expected.begin(), rough.expected.end());
    const double error = largest_error(rough, by_winograd(testing::context().target()), expected);
    MESSAGE("rough " << error << ", allowed " << rough.allowed_difference);
    CHECK(error > rough.allowed_difference);
  }
}
