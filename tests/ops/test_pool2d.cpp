#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "reference/pool2d.h"
#include "step/execution.h"

using namespace halfstep;
using testing::Check;

namespace {

struct Case {
  Shape images;
  Pool2dOptions options;
};

/// Windows that tile, overlap, leave gaps, leave out a border, extend over the border; odd channels, and as many as a
/// subgroup has lanes, or several times that; a window of many pixels.
const std::vector<Case> cases{{{2, 4, 6, 4}, {}},
                              {{1, 7, 5, 3}, {}},
                              {{2, 6, 6, 5}, {.kernel = {3, 3}, .stride = Pair{2, 2}, .padding = {1, 1}}},
                              {{1, 5, 7, 2}, {.kernel = {3, 2}, .stride = Pair{1, 1}}},
                              {{1, 9, 8, 4}, {.kernel = {2, 3}, .stride = Pair{3, 4}}},
                              {{3, 5, 4, 1}, {.kernel = {1, 1}}},
                              {{1, 4, 5, 7}, {.kernel = {4, 5}}},
                              {{1, 3, 11, 6}, {.kernel = {2, 5}, .stride = Pair{1, 2}, .padding = {1, 2}}},
                              {{1, 4, 4, 24}, {}},
                              {{2, 2, 9, 7}, {.kernel = {1, 2}, .stride = Pair{2, 3}}},
                              {{1, 9, 8, 8}, {.kernel = {9, 8}}},
                              {{1, 5, 4, 16}, {.kernel = {3, 3}, .stride = Pair{2, 2}, .padding = {1, 1}}}};

Check max_check(const Case& c) {
  return {.name = "max_pool2d",
          .build = [=](std::span<const Tensor> x) { return max_pool2d(x[0], c.options); },
          .inputs = {{testing::distinct(c.images, 10)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::max_pool2d(x[0], c.options); }};
}

Check average_check(const Case& c, bool count_padding) {
  Pool2dOptions options = c.options;
  options.count_padding = count_padding;
  return {.name = "average_pool2d",
          .build = [=](std::span<const Tensor> x) { return average_pool2d(x[0], options); },
          .inputs = {{testing::uniform(c.images, 11)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::average_pool2d(x[0], options); },
          .magnitude = 1};
}

}  // namespace

TEST_CASE("max pooling") {
  for (const Case& c : cases) {
    CAPTURE(to_string(c.images));
    testing::check_operator(max_check(c));
    testing::check_gradient(max_check(c));
  }
}

TEST_CASE("max pooling of negative images does not see the border") {
  Check check = max_check(cases[2]);
  check.inputs = {{testing::uniform(cases[2].images, 12, -9, -8)}};
  testing::check_operator(check);
}

TEST_CASE("max pooling keeps what is not a number, wherever it is in the window") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t place : {0U, 1U, 4U, 5U}) {
    Check check = max_check({{1, 4, 4, 1}, {}});
    check.inputs[0].values.values[place] = nan;
    check.reference = [=](std::span<const reference::Array> x) {
      reference::Array result = reference::max_pool2d(x[0], {});
      result.values[0] = nan;
      return result;
    };
    testing::check_operator(check);
  }
}

TEST_CASE("the first of equal elements takes the gradient of a max pooling window") {
  // Windows that tile, overlap, and leave gaps, on an image of zeros of both signs: the first pixel of each window is
  // chosen.
  for (const Pool2dOptions& options : {Pool2dOptions{}, Pool2dOptions{.kernel = {3, 2}, .stride = Pair{1, 1}},
                                       Pool2dOptions{.kernel = {2, 2}, .stride = Pair{3, 3}}}) {
    const Shape images{1, 6, 9, 8};
    Check check = max_check({images, options});
    check.inputs = {{reference::Array(images)}};
    std::vector<double>& zeros = check.inputs[0].values.values;
    for (std::size_t i = 0; i < zeros.size(); ++i) zeros[i] = i / 8 % 2 == 0 ? -0.0 : 0.0;
    check.reference = [=](std::span<const reference::Array> x) {
      // Slightly smaller after the first of each window: the same maxima, without ties.
      reference::Array tilted = x[0];
      for (std::size_t i = 0; i < tilted.values.size(); ++i) tilted.values[i] -= 1e-3 * static_cast<double>(i / 8);
      return reference::max_pool2d(tilted, options);
    };
    testing::check_gradient(check);
  }
}

TEST_CASE("what is not a number takes the gradient of the max pooling windows that it is in") {
  // Windows that tile, overlap, and of whole subgroups of channels.
  for (const Case& c : {Case{{1, 4, 6, 3}, {}}, Case{{1, 5, 6, 2}, {.kernel = {3, 2}, .stride = Pair{1, 1}}},
                        Case{{1, 4, 4, 16}, {}}}) {
    Check check = max_check(c);
    const std::size_t place = check.inputs[0].values.values.size() / 2 + 1;
    check.inputs[0].values.values[place] = std::numeric_limits<double>::quiet_NaN();
    check.gradients = [=](std::span<const reference::Array> x, const reference::Array& dy) {
      reference::Array number = x[0];
      number.values[place] = 100;  // larger than all others
      const reference::Array y = reference::max_pool2d(number, c.options);
      reference::Array dx(c.images);
      for (std::size_t i = 0; i < dx.values.size(); ++i) {
        reference::Array moved = number;
        moved.values[i] += 1e-6;
        const reference::Array moved_y = reference::max_pool2d(moved, c.options);
        for (std::size_t j = 0; j < y.values.size(); ++j) {
          if (moved_y.values[j] != y.values[j]) dx.values[i] += dy.values[j];
        }
      }
      return std::vector{dx};
    };
    testing::check_gradient(check);
  }
}

TEST_CASE("average pooling") {
  for (const Case& c : cases) {
    for (const bool count_padding : {false, true}) {
      CAPTURE(to_string(c.images));
      testing::check_operator(average_check(c, count_padding));
      testing::check_gradient(average_check(c, count_padding));
    }
  }
}

TEST_CASE("the average of a large image") {
  if (testing::context().target().max_rounds < 65535) return;  // a device that is told to end loops sooner
  Graph graph;
  const Tensor x = graph.input("x", {1, 250, 250, 1});
  const Tensor y = adaptive_average_pool2d(x, {1, 1});
  step::Execution execution(testing::context(), graph.ir(), {y.id()});
  execution.set(x.id(), std::vector<float>(62500, 0.1F));
  execution.run();
  CHECK(std::abs(execution.floats(y.id())[0] - 0.1F) < 5e-6F);
}

TEST_CASE("adaptive pooling divides images evenly or not") {
  struct Fit {
    Shape images;
    Pair size;
  };
  for (const Fit& fit :
       {Fit{{2, 6, 4, 5}, {3, 2}}, Fit{{1, 7, 5, 3}, {3, 4}}, Fit{{1, 5, 9, 4}, {5, 2}}, Fit{{2, 3, 3, 6}, {1, 1}},
        // Sizes larger than the image: a pixel is in several windows.
        Fit{{1, 3, 2, 5}, {7, 4}}, Fit{{2, 1, 1, 3}, {2, 3}}, Fit{{1, 4, 3, 4}, {5, 2}}}) {
    CAPTURE(to_string(fit.images));
    Check average{
        .name = "adaptive_average_pool2d",
        .build = [=](std::span<const Tensor> x) { return adaptive_average_pool2d(x[0], fit.size); },
        .inputs = {{testing::uniform(fit.images, 11)}},
        .reference =
            [=](std::span<const reference::Array> x) { return reference::adaptive_average_pool2d(x[0], fit.size); },
        .magnitude = 1};
    testing::check_operator(average);
    testing::check_gradient(average);
    Check largest{
        .name = "adaptive_max_pool2d",
        .build = [=](std::span<const Tensor> x) { return adaptive_max_pool2d(x[0], fit.size); },
        .inputs = {{testing::distinct(fit.images, 10)}},
        .reference =
            [=](std::span<const reference::Array> x) { return reference::adaptive_max_pool2d(x[0], fit.size); }};
    testing::check_operator(largest);
    testing::check_gradient(largest);
  }
}
