#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include "harness/check.h"
#include "harness/values.h"

using namespace halfstep;
using testing::Check;

namespace {

Check reshape_check(const Shape& from, const Shape& to, const Shape& wanted) {
  return {.name = "reshape",
          .build = [=](std::span<const Tensor> x) { return reshape(x[0], to); },
          .inputs = {{testing::uniform(from, 7)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::Array(wanted, x[0].values); }};
}

struct Case {
  Shape from;
  Shape to;
  Shape result;
};

/// Rows that keep their length, rows of whole quads, and rows that must be copied.
const std::vector<Case> cases{{{2, 3, 5}, {6, 5}, {6, 5}},
                              {{2, 12}, {-1}, {24}},
                              {{2, 8}, {4, -1}, {4, 4}},
                              {{2, 3, 5}, {-1, 3}, {10, 3}},
                              {{7}, {7, 1}, {7, 1}},
                              {{7, 1}, {-1}, {7}},
                              {{3, 7, 7, 5}, {3, -1}, {3, 245}},
                              {{1}, {}, {}},
                              {{}, {1, 1}, {1, 1}},
                              {{11, 13}, {13, 11}, {13, 11}},
                              {{6, 2}, {4, -1}, {4, 3}}};

}  // namespace

TEST_CASE("reshape keeps elements and their order") {
  for (const Case& c : cases) {
    CAPTURE(to_string(c.from));
    Check check = reshape_check(c.from, c.to, c.result);
    testing::check_gradient(check);
    check.arithmetic = 0;
    testing::check_operator(check);
  }
}

TEST_CASE("flatten keeps the first axis") {
  testing::check_operator({.name = "flatten",
                           .build = [](std::span<const Tensor> x) { return flatten(x[0]); },
                           .inputs = {{testing::uniform({3, 2, 5, 3}, 8)}},
                           .reference =
                               [](std::span<const reference::Array> x) {
                                 return reference::Array({3, 30}, x[0].values);
                               }});
}

TEST_CASE("labels can be reshaped too") {
  testing::check_operator({.name = "reshape labels",
                           .build =
                               [](std::span<const Tensor> x) {
                                 return reshape(x[0], {5, 3});
                               },
                           .inputs = {{testing::whole({3, 5}, 9, 4000000000U), testing::Kind::labels}},
                           .reference =
                               [](std::span<const reference::Array> x) {
                                 return reference::Array({5, 3}, x[0].values);
                               },
                           .dtypes = {DType::u32}});
}
