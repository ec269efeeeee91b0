#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <limits>

#include "harness/check.h"
#include "harness/values.h"
#include "reference/sum.h"

using namespace halfstep;
using testing::Check;
using testing::uniform;

namespace {

struct Case {
  Shape shape;
  std::vector<std::int64_t> axes;
};

/// Each order of kept and summed axes, rows of whole quads or not, one term and many.
const std::vector<Case> cases{{{}, {}},
                              {{1}, {}},
                              {{7}, {}},
                              {{5, 3}, {0}},
                              {{5, 3}, {1}},
                              {{5, 3}, {-1, 0}},
                              {{6, 8}, {0}},
                              {{6, 8}, {1}},
                              {{2, 3, 5}, {1}},
                              {{2, 3, 5}, {0, 2}},
                              {{2, 3, 5}, {0, 1}},
                              {{2, 3, 5}, {1, 2}},
                              {{3, 1, 7}, {1}},
                              {{2, 3, 2, 5}, {1, 3}},
                              {{2, 3, 2, 5}, {0, 2}},
                              {{2, 2, 3, 2, 3, 2, 3}, {1, 3, 5}},
                              {{2, 2, 3, 2, 3, 2, 3}, {0, 2, 4, 6}}};

/// Sums long enough to need several passes: of rows, of columns, of everything.
const std::vector<Case> long_cases{
    {{5003, 3}, {0}}, {{2, 4099}, {1}}, {{70001}, {}}, {{3, 700, 5}, {0, 1}}, {{2, 601, 3}, {1}}};

Check sum_check(const Case& c, bool keep) {
  return {.name = "sum",
          .build = [=](std::span<const Tensor> x) { return sum(x[0], c.axes, keep); },
          .inputs = {{uniform(c.shape, 5)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::sum(x[0], c.axes, keep); },
          .magnitude = 1};
}

Check mean_check(const Case& c, bool keep) {
  return {.name = "mean",
          .build = [=](std::span<const Tensor> x) { return mean(x[0], c.axes, keep); },
          .inputs = {{uniform(c.shape, 6)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::mean(x[0], c.axes, keep); },
          .magnitude = 1};
}

}  // namespace

TEST_CASE("sum and mean over any axes") {
  for (const Case& c : cases) {
    CAPTURE(to_string(c.shape));
    for (const bool keep : {false, true}) {
      testing::check_operator(sum_check(c, keep));
      testing::check_operator(mean_check(c, keep));
    }
  }
}

TEST_CASE("gradients of sum and mean") {
  for (const Case& c : cases) {
    CAPTURE(to_string(c.shape));
    for (const bool keep : {false, true}) {
      testing::check_gradient(sum_check(c, keep));
      testing::check_gradient(mean_check(c, keep));
    }
  }
}

TEST_CASE("long sums are made in several passes") {
  for (const Case& c : long_cases) {
    CAPTURE(to_string(c.shape));
    Check check = sum_check(c, false);
    check.arithmetic = 1e-6 * 70;  // the errors of terms add up like the square root of their number
    testing::check_operator(check);
    testing::check_operator(mean_check(c, true));
  }
}

TEST_CASE("an f16 sum overflows only where its result does, not on the way") {
  const reference::Array ones({3, 1000}, 100.0);
  reference::Array alternating({3, 1000});
  for (std::size_t i = 0; i < alternating.values.size(); ++i) alternating.values[i] = i % 2 == 0 ? 60000 : -60000;
  const auto check = [](const char* name, const reference::Array& values) {
    return Check{.name = name,
                 .build = [](std::span<const Tensor> x) { return sum(x[0], {1}); },
                 .inputs = {{values}},
                 .reference = [](std::span<const reference::Array> x) { return reference::sum(x[0], {1}, false); },
                 .dtypes = {DType::f16}};
  };
  testing::check_operator(check("alternating", alternating));
  Check overflowing = check("100000", ones);
  overflowing.reference = [](std::span<const reference::Array>) {
    return reference::Array({3}, std::numeric_limits<double>::infinity());
  };
  testing::check_operator(overflowing);
}
