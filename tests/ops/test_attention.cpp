#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "harness/check.h"
#include "harness/values.h"
#include "reference/array.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// {n, h, g, queries, keys, c, d}.
struct Sizes {
  std::int64_t n = 1, h = 1, g = 1, queries = 1, keys = 1, c = 1, d = 1;
};

struct Masks {
  bool causal = false;
  std::int64_t window = 0;
  std::vector<double> lengths{};  ///< of every batch; none if empty
};

/// The weights of all keys for one query, from their scores.
std::vector<double> weights_of(std::vector<double> scores) {
  const double top = *std::ranges::max_element(scores);
  double total = 0;
  for (double& s : scores) {
    s = top == -infinity ? 0 : std::exp(s - top);
    total += s;
  }
  for (double& s : scores) s = total == 0 ? 0 : s / total;
  return scores;
}

/// Attention as it is defined; x: q, k, v and, if there is one, a mask {n, h, queries, keys}.
Array attention_of(std::span<const Array> x, const Sizes& size, const Masks& masks, const Array* mask) {
  Array y({size.n, size.h, size.queries, size.d});
  const std::size_t last = y.shape.size();
  REQUIRE(last == 4);
  for (std::int64_t row = 0; row < size.n * size.h * size.queries; ++row) {
    const std::int64_t i = row % size.queries;
    const std::int64_t batch = row / size.queries / size.h;
    const std::int64_t key_head = batch * size.g + row / size.queries % size.h / (size.h / size.g);
    std::vector<double> scores(static_cast<std::size_t>(size.keys), -infinity);
    for (std::int64_t j = 0; j < size.keys; ++j) {
      if (masks.causal && j > i) continue;
      if (masks.window > 0 && std::abs(i - j) >= masks.window) continue;
      const auto b = static_cast<std::size_t>(batch);
      if (!masks.lengths.empty() && static_cast<double>(j) >= masks.lengths[b]) continue;
      double score = 0;
      for (std::int64_t e = 0; e < size.c; ++e) {
        score += x[0].values[static_cast<std::size_t>(row * size.c + e)] *
                 x[1].values[static_cast<std::size_t>((key_head * size.keys + j) * size.c + e)];
      }
      score /= std::sqrt(static_cast<double>(size.c));
      if (mask != nullptr) score += mask->values[static_cast<std::size_t>(row * size.keys + j)];
      scores[static_cast<std::size_t>(j)] = score;
    }
    const std::vector<double> weights = weights_of(std::move(scores));
    for (std::int64_t e = 0; e < size.d; ++e) {
      double sum = 0;
      for (std::int64_t j = 0; j < size.keys; ++j) {
        sum += weights[static_cast<std::size_t>(j)] *
               x[2].values[static_cast<std::size_t>((key_head * size.keys + j) * size.d + e)];
      }
      y.values[static_cast<std::size_t>(row * size.d + e)] = sum;
    }
  }
  return y;
}

Check check_of(const Sizes& size, const Masks& masks) {
  Check check;
  check.name = "attention";
  check.inputs = {{uniform({size.n, size.h, size.queries, size.c}, 1, -2, 2)},
                  {uniform({size.n, size.g, size.keys, size.c}, 2, -2, 2)},
                  {uniform({size.n, size.g, size.keys, size.d}, 3)}};
  check.arithmetic = 4e-6;
  check.roundings = 8;
  if (!masks.lengths.empty()) check.inputs.push_back({Array({size.n}, masks.lengths), testing::Kind::labels});
  check.build = [=](std::span<const Tensor> x) {
    AttentionOptions options{.causal = masks.causal, .window = masks.window};
    if (!masks.lengths.empty()) options.key_lengths = x[3];
    return attention(x[0], x[1], x[2], options);
  };
  check.reference = [=](std::span<const Array> x) { return attention_of(x, size, masks, nullptr); };
  return check;
}

const std::vector<Masks> all_masks{{},
                                   {.causal = true},
                                   {.window = 3},
                                   {.causal = true, .window = 2},
                                   {.lengths = {5, 0}},
                                   {.causal = true, .lengths = {2, 7}}};

}  // namespace

TEST_CASE("attention with every mask") {
  for (const Masks& masks : all_masks) {
    testing::check_operator(check_of({2, 3, 3, 7, 7, 8, 8}, masks));
    testing::check_operator(check_of({2, 4, 2, 5, 9, 6, 3}, masks));  // grouped heads
    testing::check_operator(check_of({2, 3, 1, 13, 6, 5, 7}, masks));
  }
  testing::check_operator(check_of({1, 2, 2, 67, 131, 32, 16}, {}));
  testing::check_operator(check_of({1, 1, 1, 1, 1, 1, 1}, {}));
}

TEST_CASE("gradients of attention with every mask") {
  for (const Masks& masks : all_masks) {
    for (const Sizes& size : {Sizes{2, 2, 2, 4, 4, 4, 4}, Sizes{2, 4, 2, 3, 5, 2, 3}}) {
      Check check = check_of(size, masks);
      check.magnitude = 4;
      check.roundings = 12;
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("attention with an additive mask, which may have a gradient") {
  const Sizes size{2, 2, 1, 3, 5, 4, 4};
  Check check = check_of(size, {});
  check.inputs.push_back({uniform({2, 2, 3, 5}, 4)});
  check.build = [](std::span<const Tensor> x) { return attention(x[0], x[1], x[2], {.mask = x[3]}); };
  check.reference = [=](std::span<const Array> x) { return attention_of(x, size, {}, &x[3]); };
  testing::check_operator(check);
  check.magnitude = 4;
  check.roundings = 12;
  testing::check_gradient(check);
  // Minus infinity hides a key; here all keys of the first query, whose result is 0.
  for (std::size_t i = 0; i < 60; ++i) {
    if (i % 4 == 1 || i < 5) check.inputs[3].values.values[i] = -infinity;
  }
  testing::check_operator(check);
}

TEST_CASE("attention says what it cannot take") {
  Graph graph;
  const Tensor q = graph.input("q", {2, 4, 3, 8});
  const Tensor k = graph.input("k", {2, 2, 5, 8});
  const Tensor odd = graph.input("odd", {2, 3, 5, 8});
  const Tensor lengths = graph.input("lengths", {3}, DType::u32);
  CHECK_THROWS_WITH_AS(attention(q, odd, odd),
                       "[attention] expected query heads that are a multiple of 3 key heads, got 4", Error);
  CHECK_THROWS_WITH_AS(attention(q, k, odd), doctest::Contains("[attention] expected q {n, h, queries, c}, k"), Error);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.window = -1}), "[attention] expected a window of 0 or more, got -1", Error);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.key_lengths = lengths}),
                       "[attention] expected key lengths u32 {2}, got u32 {3}", Error);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.mask = graph.input("mask", {7, 2, 4, 3, 5})}),
                       "[attention] expected a mask that broadcasts to {2, 4, 3, 5}, got f32 {7, 2, 4, 3, 5}", Error);
}
