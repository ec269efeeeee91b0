#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <span>
#include <utility>

#include "harness/check.h"
#include "harness/kernel_targets.h"
#include "harness/values.h"
#include "reference/array.h"
#include "reference/attention.h"

namespace halfstep {
namespace {

using reference::Array;

/// With a mask, whose gradient is that of the scores.
testing::Check masked_check(Array q, Array k, Array v, Array mask, bool fused) {
  const reference::Attention masks{.masked = true};
  testing::Check check;
  check.name = fused ? "attention" : "composed attention";
  check.inputs = {{std::move(q)}, {std::move(k)}, {std::move(v)}, {std::move(mask)}};
  if (fused) check.targets = testing::attention_targets();
  check.build = [=](std::span<const Tensor> x) { return attention(x[0], x[1], x[2], {.mask = x[3], .fused = fused}); };
  check.reference = [=](std::span<const Array> x) { return reference::attention(x, masks); };
  check.gradients = [=](std::span<const Array> x, const Array& dy) {
    return reference::attention_gradients(x, dy, masks);
  };
  return check;
}

}  // namespace

// A score of 40 rounded to bf16 would be off by up to 1/8, and its weight by as much of itself.
TEST_CASE("attention: scores that are large keep the digits that their weights take") {
  for (const bool fused : {true, false}) {
    testing::Check check =
        masked_check(testing::uniform({1, 2, 9, 16}, 1, -11, 11), testing::uniform({1, 1, 13, 16}, 2, -11, 11),
                     testing::uniform({1, 1, 13, 8}, 3), testing::uniform({1, 2, 9, 13}, 4, -8, 8), fused);
    check.arithmetic = 1e-4;
    check.roundings = 3;
    testing::check_operator(check);
    testing::check_gradient(check);
  }
}

// dy . v is 2e5, and its differences between keys, which are what the gradients are made of, are some hundreds.
TEST_CASE("attention: gradients of weights beyond f16 are no gradients of scores beyond it") {
  testing::Check check = masked_check(testing::uniform({1, 2, 9, 16}, 1), testing::uniform({1, 1, 13, 16}, 2),
                                      testing::uniform({1, 1, 13, 64}, 3, 1, 1.03), Array({1, 2, 9, 13}, 0), false);
  check.build = [build = check.build](std::span<const Tensor> x) { return scale(build(x), 30000); };
  check.reference = [reference = check.reference](std::span<const Array> x) {
    Array y = reference(x);
    for (double& value : y.values) value *= 30000;
    return y;
  };
  check.gradients = [gradients = check.gradients](std::span<const Array> x, Array dy) {
    for (double& value : dy.values) value *= 30000;
    return gradients(x, dy);
  };
  check.dtypes = {DType::f16};
  check.roundings = 8;
  testing::check_gradient(check);
}

}  // namespace halfstep
