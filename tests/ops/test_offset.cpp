#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include "harness/check.h"
#include "harness/values.h"
#include "reference/elementwise.h"

using namespace halfstep;

TEST_CASE("a constant is added") {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5}, Shape{2, 3, 4}, Shape{131, 67}}) {
    const testing::Check check{
        .name = "offset",
        .build = [](std::span<const Tensor> x) { return offset(x[0], -2.75F); },
        .inputs = {{testing::uniform(shape, 1, 0.5, 4)}},
        .reference =
            [](std::span<const reference::Array> x) { return reference::map(x[0], [](double v) { return v - 2.75; }); },
        .magnitude = 4};
    testing::check_operator(check);
    if (shape.size() < 3 && elements(shape) < 100) testing::check_gradient(check);
  }
}
