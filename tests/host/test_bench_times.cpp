#include <halfstep/error.h>

#include <doctest/doctest.h>

#include "bench/report.h"

using namespace halfstep;

TEST_CASE("the median of an even number of times is the mean of the two in the middle") {
  CHECK(bench::times_of({4, 1, 2, 8}).median == 3);
  CHECK(bench::times_of({4, 1, 2}).median == 2);
  CHECK(bench::times_of({5, 1}).median == 3);
  CHECK(bench::times_of({5, 1}).least == 1);
  CHECK(bench::times_of({7}).median == 7);
  CHECK_THROWS_AS(bench::times_of({}), Error);
}
