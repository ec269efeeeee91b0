#include <halfstep/error.h>

#include <doctest/doctest.h>

#include "harness/check.h"
#include "harness/values.h"
#include "ops/elementwise/multiply_adds.h"

using namespace halfstep;
using testing::Check;

TEST_CASE("multiply_adds makes every one of its steps") {
  constexpr std::int32_t rounds = 3;
  const auto reference = [](std::span<const reference::Array> x) {
    reference::Array y(x[0].shape);
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      for (int chain = 0; chain < 3; ++chain) {
        double sum = x[0].values[i] + chain;
        for (int step = 0; step < 16 * rounds; ++step) sum = sum * 0.5 + 3;
        y.values[i] += sum;
      }
    }
    return y;
  };
  Check check{.name = "multiply_adds",
              .build = [](std::span<const Tensor> x) { return ops::multiply_adds(x[0], rounds, 0.5F, 3); },
              .inputs = {{testing::uniform({7, 12}, 5)}},
              .reference = reference};
  check.dtypes = {DType::f32};
  testing::check_operator(check);
}

TEST_CASE("multiply_adds counts: nothing rounds while integers are small") {
  Check check{.name = "multiply_adds",
              .build = [](std::span<const Tensor> x) { return ops::multiply_adds(x[0], 5, 1, 2); },
              .inputs = {{reference::Array({3, 4}, 1)}},
              .reference =
                  [](std::span<const reference::Array> x) {
                    // Begins as 1, 2 and 3; each takes 80 steps of 2.
                    return reference::Array(x[0].shape, 6 + 3 * 160);
                  }};
  check.dtypes = {DType::f32};
  check.arithmetic = 0;
  testing::check_operator(check);
}
