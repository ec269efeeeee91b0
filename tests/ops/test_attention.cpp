#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/kernel_targets.h"
#include "harness/loop_limit.h"
#include "harness/values.h"
#include "plan/graph_values.h"
#include "reference/array.h"
#include "reference/attention.h"
#include "step/execution.h"
#include "vk/shader/shaders.h"

using namespace halfstep;
using reference::Array;
using testing::attention_targets;
using testing::Check;
using testing::on_swiftshader;
using testing::uniform;
using Masks = reference::Attention;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// {n, h, g, queries, keys, c, d}.
struct Sizes {
  std::int64_t n = 1, h = 1, g = 1, queries = 1, keys = 1, c = 1, d = 1;
};

/// A mask is input 3, lengths or segments come last.
Check check_of(const Sizes& size, const Masks& masks, bool fused = true) {
  Check check;
  check.name = fused ? "attention" : "composed attention";
  check.inputs = {{uniform({size.n, size.h, size.queries, size.c}, 1, -2, 2)},
                  {uniform({size.n, size.g, size.keys, size.c}, 2, -2, 2)},
                  {uniform({size.n, size.g, size.keys, size.d}, 3)}};
  check.arithmetic = 4e-6;
  check.roundings = 8;
  if (fused) check.targets = attention_targets();
  if (masks.masked) check.inputs.push_back({uniform({size.n, size.h, size.queries, size.keys}, 4)});
  if (!masks.lengths.empty()) check.inputs.push_back({Array({size.n}, masks.lengths), testing::Kind::labels});
  if (!masks.segments.empty()) {
    check.inputs.push_back({Array({size.n, size.keys}, masks.segments), testing::Kind::labels});
  }
  check.build = [=](std::span<const Tensor> x) {
    AttentionOptions options{.causal = masks.causal, .window = masks.window, .fused = fused};
    if (masks.masked) options.mask = x[3];
    if (!masks.lengths.empty()) options.key_lengths = x.back();
    if (!masks.segments.empty()) options.segments = x.back();
    return attention(x[0], x[1], x[2], options);
  };
  check.reference = [=](std::span<const Array> x) { return reference::attention(x, masks); };
  return check;
}

/// On `target`, in f32.
std::vector<float> result_of(const Check& check, const plan::Target& target) {
  Graph graph;
  std::vector<Tensor> inputs;
  for (const testing::Operand& operand : check.inputs) {
    const DType dtype = operand.kind == testing::Kind::labels ? DType::u32 : DType::f32;
    inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), operand.values.shape, dtype));
  }
  const Tensor y = check.build(inputs);
  step::ExecutionOptions options;
  options.target = target;
  step::Execution execution(testing::context(), graph.ir(), {y.id()}, options);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<double>& given = check.inputs[i].values.values;
    const bool whole = inputs[i].type().dtype == DType::u32;
    if (whole) execution.set(inputs[i].id(), std::vector<std::uint32_t>(given.begin(), given.end()));
    if (!whole) execution.set(inputs[i].id(), std::vector<float>(given.begin(), given.end()));
  }
  execution.run();
  return execution.floats(y.id());
}

/// For gradients against the formula in double rather than differences: for sizes that those would take too long for.
Check with_formula(Check check, const Masks& masks) {
  check.gradients = [=](std::span<const Array> x, const Array& dy) {
    return reference::attention_gradients(x, dy, masks);
  };
  return check;
}

const std::vector<Masks> all_masks{{},
                                   {.causal = true},
                                   {.window = 3},
                                   {.window = 0xFFFFFFFF},
                                   {.causal = true, .window = 2},
                                   {.lengths = {5, 0}},
                                   {.causal = true, .lengths = {2, 7}},
                                   {.masked = true},
                                   {.causal = true, .lengths = {4, 6}, .masked = true}};

/// A number for each segment of rows, from their lengths. The last of a row has the largest.
std::vector<double> segments_of(const std::vector<std::vector<std::size_t>>& rows) {
  std::vector<double> numbers;
  for (const std::vector<std::size_t>& lengths : rows) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      numbers.insert(numbers.end(), lengths[i], i + 1 < lengths.size() ? static_cast<double>(3 * i) : 0xFFFFFFFFp0);
    }
  }
  return numbers;
}

/// Rounds of an invocation grow with the width of heads: where a driver's limit is made that small, only narrow ones.
bool wide_heads_run() {
  return testing::context().target().max_rounds > 1000;
}

}  // namespace

TEST_CASE("attention with every mask") {
  for (const Masks& masks : all_masks) {
    testing::check_operator(check_of({2, 3, 3, 7, 7, 8, 8}, masks));
    testing::check_operator(check_of({2, 4, 2, 5, 9, 6, 3}, masks));  // grouped heads
    testing::check_operator(check_of({2, 3, 1, 13, 6, 5, 7}, masks, false));
  }
  for (const bool fused : {true, false}) {
    testing::check_operator(check_of({1, 2, 2, 67, 131, 32, 16}, {}, fused));
    testing::check_operator(check_of({1, 1, 1, 1, 1, 1, 1}, {}, fused));
  }
}

TEST_CASE("gradients of attention with every mask") {
  for (const Masks& masks : all_masks) {
    for (const bool fused : {true, false}) {
      Check check = check_of(fused ? Sizes{2, 4, 2, 3, 5, 2, 3} : Sizes{2, 2, 2, 4, 4, 4, 4}, masks, fused);
      check.roundings = 12;
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("the formula of attention's gradients is that of differences") {
  for (const Masks& masks : all_masks) {
    const Check check = check_of({2, 4, 2, 5, 7, 3, 2}, masks);
    std::vector<Array> x;
    for (const testing::Operand& operand : check.inputs) x.push_back(operand.values);
    const Array dy = uniform({2, 4, 5, 2}, 9);
    const std::vector<Array> got = reference::attention_gradients(x, dy, masks);
    for (std::size_t which = 0; which < got.size(); ++which) {
      for (std::size_t i = 0; i < got[which].values.size(); ++i) {
        const auto loss = [&](double change) {
          std::vector<Array> moved = x;
          moved[which].values[i] += change;
          const Array y = reference::attention(moved, masks);
          double total = 0;
          for (std::size_t j = 0; j < y.values.size(); ++j) total += y.values[j] * dy.values[j];
          return total;
        };
        CHECK(got[which].values[i] == doctest::Approx((loss(1e-5) - loss(-1e-5)) / 2e-5).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("attention and its gradients with heads of every width and many keys") {
  std::vector<Sizes> sizes{{1, 2, 1, 33, 45, 16, 16}};
  if (wide_heads_run()) sizes.push_back({1, 1, 1, 37, 41, 256, 80});
  if (testing::every_variant()) {
    for (const std::int64_t width : {32, 64, 80, 128, 256}) {
      for (const std::int64_t length : {1, 7, 128, 513}) sizes.push_back({1, 2, 1, length, length, width, width});
    }
    sizes.push_back({1, 1, 1, 2048, 2048, 64, 64});
  }
  std::size_t turn = 0;
  const std::vector<Masks> turns{{}, {.causal = true}, {.window = 19}, {.causal = true, .lengths = {31, 77}}};
  for (const Sizes& size : sizes) {
    Masks masks = turns[turn++ % turns.size()];
    if (!masks.lengths.empty()) masks.lengths.resize(static_cast<std::size_t>(size.n));
    CAPTURE(size.queries);
    CAPTURE(size.c);
    Check check = check_of(size, masks);
    check.arithmetic = 1e-5;
    testing::check_operator(check);
    check.roundings = 12;
    testing::check_gradient(with_formula(check, masks));
  }
}

TEST_CASE("attention in parts of few loop rounds gives the same as in one, on GPUs too") {
  if (!wide_heads_run()) return;  // then every test is cut into parts
  plan::Target gpu = testing::targets().front();
  gpu.cpu = false;
  gpu.max_rounds = 260;
  plan::Target rows = testing::targets().front();
  rows.score_bytes = 0;
  rows.max_rounds = 140;
  const Masks masks{.causal = true, .window = 70, .lengths = {100}};
  Check check = check_of({1, 4, 2, 105, 103, 8, 16}, masks);
  check.targets.clear();
  if (rows.cpu) check.targets.push_back(rows);
  if (!on_swiftshader()) check.targets.push_back(gpu);
  check.dtypes = {DType::f32, DType::f16};
  testing::check_operator(check);
  check.roundings = 12;
  testing::check_gradient(with_formula(check, masks));
}

// So many additions to one sum would be off by 1e-3, if each rounded the same. A tile's terms are added up first.
TEST_CASE("attention over 131,072 equal keys loses little to rounding") {
  Check check = check_of({1, 1, 1, 1, 131'072, 4, 4}, {});
  for (testing::Operand& operand : check.inputs) std::ranges::fill(operand.values.values, 0.7);
  check.dtypes = {DType::f32};
  check.arithmetic = 2e-4;
  if (wide_heads_run() && !on_swiftshader()) {
    check.targets.push_back(check.targets.front());
    check.targets.back().cpu = false;
  }
  testing::check_operator(check);
}

TEST_CASE("attention of packed sequences sees each of them alone") {
  if (!wide_heads_run()) return;
  Masks masks{.segments = segments_of({{3, 40, 1, 27, 1}, {2, 70}})};
  for (const bool causal : {false, true}) {
    masks.causal = causal;
    masks.window = causal ? 9 : 0;
    Check check = check_of({2, 4, 2, 72, 72, 8, 6}, masks);
    testing::check_operator(check);
    check.roundings = 12;
    testing::check_gradient(with_formula(check, masks));
    check = check_of({2, 4, 2, 72, 72, 8, 6}, masks, false);
    testing::check_operator(check);
  }
  masks.masked = true;
  testing::check_operator(check_of({2, 4, 2, 72, 72, 8, 6}, masks));
}

// The last row of all is the only one of its tile, of 8 or of 32 rows; of the tiles at both ends of a window, a row
// sees the nearest row only.
TEST_CASE("attention reads a tile of which only one row is seen") {
  if (!wide_heads_run()) return;
  for (const bool causal : {false, true}) {
    const Masks masks{.causal = causal, .window = 34};
    Check check = with_formula(check_of({1, 1, 1, 97, 97, 8, 8}, masks), masks);
    check.dtypes = {DType::f32};
    for (const plan::Target& target : attention_targets()) {
      if (target.cpu && target.score_bytes > 0) continue;  // by products
      check.targets = {target};
      testing::check_operator(check);
      testing::check_gradient(check);
    }
  }
}

// A driver with such a limit ends loops there, and what they would have added is missing.
TEST_CASE("attention of packed sequences runs no more loop rounds than it counts") {
  if (!wide_heads_run() || on_swiftshader()) return;
  constexpr std::uint32_t limit = 420;
  const Check check = check_of({1, 1, 1, 300, 300, 8, 8}, {.causal = true, .segments = std::vector<double>(300, 0)});
  plan::Target target = testing::context().target();
  for (const bool cpu : {true, false}) {
    target.cpu = cpu;
    target.max_rounds = plan::Target{}.max_rounds;
    const std::vector<float> wanted = result_of(check, target);
    vk::patch_shaders([](std::string_view, const std::vector<std::uint32_t>& words) {
      return testing::with_loop_limit(words, limit);
    });
    target.max_rounds = limit;
    CHECK(result_of(check, target) == wanted);
    vk::patch_shaders({});
  }
}

TEST_CASE("attention of segments whose numbers decrease") {
  if (!wide_heads_run()) return;
  std::vector<plan::Target> targets = attention_targets();
  targets.push_back(targets.front());
  targets.back().cpu = false;  // with the kernels for GPUs
  if (on_swiftshader()) targets.resize(1);
  struct Row {
    std::array<double, 3> numbers;
    std::array<std::size_t, 3> ends;
  };
  // The numbers of packed sequences, whose padding is often numbered 0, and of sequences in two parts.
  for (const Row& row : {Row{{1, 2, 0}, {10, 30, 72}}, Row{{0, 1, 0}, {16, 64, 100}}, Row{{0, 1, 0}, {4, 16, 25}}}) {
    CAPTURE(row.ends.back());
    // The first batch's numbers do not decrease: what is found of the second must not reach it.
    const std::size_t rows = row.ends.back();
    std::vector<double> segments(2 * rows, 0);
    for (std::size_t i = 0; i < rows; ++i) {
      segments[rows + i] = row.numbers[i < row.ends[0] ? 0 : i < row.ends[1] ? 1 : 2];
    }
    const auto count = static_cast<std::int64_t>(rows);
    Check check = check_of({2, 2, 2, count, count, 8, 6}, {.segments = segments});
    check.targets = targets;
    testing::check_operator(check);
    if (rows < 30) testing::check_gradient(check);
  }
}

TEST_CASE("attention on a device with few storage buffers") {
  Check check = check_of({2, 4, 2, 5, 9, 6, 3}, {.causal = true, .lengths = {2, 7}});
  check.targets.resize(1);
  check.targets[0].score_bytes = 0;
  check.targets[0].max_storage_buffers = 8;
  testing::check_operator(check);
}

TEST_CASE("attention that stores its scores gives the same where heads are wider than 256") {
  if (!wide_heads_run()) return;
  Check check = check_of({1, 1, 1, 3, 5, 257, 2}, {.causal = true});
  check.arithmetic = 1e-5;
  testing::check_operator(check);
}

TEST_CASE("attention with a mask that broadcasts, or hides all keys") {
  const Sizes size{2, 2, 1, 3, 5, 4, 4};
  for (const bool fused : {true, false}) {
    Check check = check_of(size, {.masked = true}, fused);
    check.roundings = 12;
    // Minus infinity hides a key; here all keys of the first query, whose result is 0.
    for (std::size_t i = 0; i < 60; ++i) {
      if (i % 4 == 1 || i < 5) check.inputs[3].values.values[i] = -infinity;
    }
    testing::check_operator(check);
    for (const Shape& shape : {Shape{5}, Shape{3, 1}, Shape{2, 1, 1, 5}}) {
      check.inputs[3] = {uniform(shape, 5)};
      // What is added to all scores of a query changes nothing: its gradient is a sum of terms that cancel.
      check.magnitude = shape.back() == 1 ? 1 : 0;
      check.reference = [](std::span<const Array> x) {
        std::vector<Array> all(x.begin(), x.end());
        all[3] = Array({2, 2, 3, 5});
        for (std::size_t i = 0; i < 60; ++i) {
          const std::vector<std::int64_t> place = reference::position(all[3].shape, i);
          all[3].values[i] = x[3].values[reference::index_of(x[3].shape, place)];
        }
        return reference::attention(all, {.masked = true});
      };
      testing::check_operator(check);
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("attention with dropout draws as dropout of the weights does, fused or not") {
  for (const Sizes& size : {Sizes{2, 2, 1, 5, 7, 4, 4}, Sizes{1, 2, 2, 40, 37, 8, 4}}) {
    for (const bool fused : {true, false}) {
      Masks masks{.causal = size.n == 1};
      masks.kept = [=](std::int64_t row, std::int64_t key) {
        const auto quad = static_cast<std::uint32_t>(row * ((size.keys + 3) / 4) + key / 4);
        const auto words = process::philox4x32({quad, plan::noise_stream("dropout 0"), 0, 0}, process::philox_key(0));
        return words[static_cast<std::size_t>(key % 4)] < 0x1p30 ? 0 : 1 / 0.75;
      };
      Check check = check_of(size, masks, fused);
      check.build = [=](std::span<const Tensor> x) {
        return attention(x[0], x[1], x[2], {.causal = masks.causal, .dropout = 0.25F, .fused = fused});
      };
      testing::check_operator(check);
      check.roundings = 12;
      testing::check_gradient(with_formula(check, masks));
    }
  }
}
