#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <array>
#include <utility>

#include "harness/check.h"
#include "harness/values.h"
#include "ops/elementwise/multiply_adds.h"

using namespace halfstep;
using testing::Check;

namespace {

reference::Array expected(const reference::Array& x, std::int32_t rounds, double factor) {
  reference::Array y(x.shape);
  for (std::size_t quad = 0; quad < x.values.size(); quad += 4) {
    std::array<double, 12> numbers{};
    for (std::size_t i = 0; i < 12; ++i) numbers[i] = x.values[quad + i % 4] + static_cast<double>(i);
    for (int step = 0; step < 64 * rounds; ++step) {
      const std::array<double, 12> before = numbers;
      for (std::size_t i = 0; i < 12; ++i) numbers[i] = before[i] * factor + before[(i + 1) % 12];
    }
    for (std::size_t i = 0; i < 12; ++i) y.values[quad + i % 4] += numbers[i];
  }
  return y;
}

Check check_of(reference::Array x, std::int32_t rounds, float factor) {
  Check check{
      .name = "multiply_adds",
      .build = [=](std::span<const Tensor> in) { return ops::multiply_adds(in[0], rounds, factor); },
      .inputs = {{std::move(x)}},
      .reference = [=](std::span<const reference::Array> in) { return expected(in[0], rounds, double{factor}); }};
  check.dtypes = {DType::f32};
  return check;
}

}  // namespace

TEST_CASE("multiply_adds makes every one of its steps") {
  testing::check_operator(check_of(testing::uniform({7, 12}, 5), 3, -0.0625F));
}

TEST_CASE("multiply_adds counts: nothing rounds while integers are small") {
  reference::Array x({3, 4}, 1);
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<double>(i * i);
  Check check = check_of(std::move(x), 5, 0);
  check.arithmetic = 0;
  testing::check_operator(check);
}
