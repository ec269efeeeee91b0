// How a program is cut into submits: every group is in exactly one piece, in order, and pieces follow measured times.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "plan/pieces.h"

using namespace halfstep;
using plan::Piece;
using plan::Pieces;
using plan::Slice;

namespace {

/// Dispatches of so many groups each, which multiply and add for so many seconds on the device that is assumed at
/// first.
plan::Program program_of(const std::vector<std::uint32_t>& groups, double seconds) {
  plan::Program program;
  for (const std::uint32_t count : groups) {
    plan::Dispatch& dispatch = program.dispatches.emplace_back();
    dispatch.groups = {count, 1, 1};
    dispatch.flops = 20e9 * seconds;
    dispatch.push.resize(16);
  }
  return program;
}

/// Throws doctest's failure unless the pieces have every group of every dispatch once, in order.
void check_complete(const plan::Program& program, const std::vector<Piece>& pieces) {
  std::size_t dispatch = 0;
  std::uint64_t group = 0;
  for (const Piece& piece : pieces) {
    CHECK_FALSE(piece.empty());
    for (const Slice& slice : piece) {
      REQUIRE(slice.dispatch == dispatch);
      const std::uint64_t all = program.dispatches[dispatch].groups[0];
      if (slice.width != 0) REQUIRE(std::uint64_t{slice.row} * slice.width == group);
      group += slice.width == 0 ? all : slice.width;
      if (group < all) continue;
      dispatch++;
      group = 0;
    }
  }
  CHECK(dispatch == program.dispatches.size());
  CHECK(group == 0);
}

/// A device whose kernels are compiled before they run.
plan::Target gpu() {
  plan::Target target;
  target.cpu = false;
  return target;
}

/// What pieces take whose dispatches take `seconds` each.
std::vector<double> times_of(const plan::Program& program, const std::vector<Piece>& pieces, double seconds) {
  std::vector<double> microseconds;
  for (const Piece& piece : pieces) {
    double total = 0;
    for (const Slice& slice : piece) {
      const double all = program.dispatches[slice.dispatch].groups[0];
      total +=
          slice.width == 0 ? seconds : seconds * std::min<double>(slice.width, all - slice.row * slice.width) / all;
    }
    microseconds.push_back(total * 1e6);
  }
  return microseconds;
}

}  // namespace

TEST_CASE("a program whose dispatches are predicted to be short is one piece") {
  const plan::Program program = program_of({10, 20, 30}, 0.01);
  const Pieces pieces(program, plan::Target{});
  CHECK(pieces.list().size() == 1);
  check_complete(program, pieces.list());
}

TEST_CASE("pieces are cut between dispatches, and within those that take too long") {
  for (const std::uint32_t groups : {1U, 2U, 7U, 1000U, 65535U}) {
    for (const double seconds : {0.03, 0.2, 1.7, 30.0}) {
      CAPTURE(groups);
      CAPTURE(seconds);
      const plan::Program program = program_of({groups, groups, 3, groups}, seconds);
      const Pieces pieces(program, plan::Target{});
      check_complete(program, pieces.list());
      CHECK(pieces.list().size() > 1);
      if (groups < 1000) continue;
      for (const double time : times_of(program, {pieces.list().front()}, seconds)) CHECK(time < 100e3);
    }
  }
}

TEST_CASE("the groups of an application's own kernel are submitted together") {
  plan::Program program = program_of({1000}, 5);
  program.dispatches[0].spirv = std::make_shared<const std::vector<std::uint32_t>>();
  const Pieces pieces(program, plan::Target{});
  CHECK(pieces.list() == std::vector<Piece>{{Slice{}}});
}

TEST_CASE("rows of groups keep to the device's limits") {
  plan::Target target;
  target.max_groups = {100, 20, 1};
  plan::Program program = program_of({1}, 1);
  program.dispatches[0].groups = {100, 10, 1};
  for (const double limit : {0.3, 0.07, 1e-6}) {
    target.submit_seconds = limit;
    const Pieces pieces(program, target);
    std::uint64_t groups = 0;
    for (const Piece& piece : pieces.list()) {
      for (const Slice& slice : piece) {
        CHECK(slice.width <= 100);
        groups += groups_of(slice, program.dispatches[0])[0];
      }
    }
    CHECK(groups == 1000);
  }
}

TEST_CASE("a dispatch whose push constants have no room for the first group is not cut") {
  plan::Target target;
  target.max_push_bytes = 128;
  for (const std::size_t bytes : {0U, 4U, 124U, 128U}) {
    CAPTURE(bytes);
    plan::Program program = program_of({1000}, 10);
    program.dispatches[0].push.resize(bytes);
    CHECK((Pieces(program, target).list().size() == 1) == (bytes == 0 || bytes == 128));
  }
}

TEST_CASE("a device that is faster than assumed takes the program in one piece once it was measured") {
  const plan::Program program = program_of({1000, 1000, 1000}, 1);
  Pieces pieces(program, gpu());
  CHECK(pieces.list().size() > 30);
  CHECK(pieces.measured(times_of(program, pieces.list(), 1e-3)));
  CHECK(pieces.list().size() == 1);
  CHECK_FALSE(pieces.measured(times_of(program, pieces.list(), 1e-3)));
}

TEST_CASE("pieces that take too long are cut anew, and stay as they are while they do not") {
  const plan::Program program = program_of({1000, 1000, 1000}, 0.01);
  Pieces pieces(program, gpu());
  REQUIRE(pieces.list().size() == 1);
  CHECK(pieces.measured(times_of(program, pieces.list(), 0.5)));
  check_complete(program, pieces.list());
  const std::vector<double> now = times_of(program, pieces.list(), 0.5);
  CHECK(*std::ranges::max_element(now) <= 100e3);
  CHECK(std::accumulate(now.begin(), now.end(), 0.0) == doctest::Approx(1.5e6));
  // One run that takes four times as long changes nothing.
  for (const double seconds : {0.5, 0.6, 0.4, 2.0, 0.3}) {
    CHECK_FALSE(pieces.measured(times_of(program, pieces.list(), seconds)));
  }
  int runs = 1;
  while (!pieces.measured(times_of(program, pieces.list(), 0.1)) && runs < 100) ++runs;
  CHECK(runs < 10);
}

TEST_CASE("a software driver compiles in the first run of what was cut: its time is passed over") {
  const plan::Program program = program_of({1000, 1000, 1000}, 0.01);
  Pieces pieces(program, plan::Target{});
  REQUIRE(pieces.list().size() == 1);
  CHECK_FALSE(pieces.measured(times_of(program, pieces.list(), 0.5)));
  CHECK_FALSE(pieces.measured(times_of(program, pieces.list(), 0.01)));
  CHECK(pieces.measured(times_of(program, pieces.list(), 1.0)));
  const std::size_t cut = pieces.list().size();
  CHECK(cut > 1);
  CHECK_FALSE(pieces.measured(times_of(program, pieces.list(), 5.0)));
  CHECK_FALSE(pieces.measured(times_of(program, pieces.list(), 0.25)));
  CHECK(pieces.limit(0.01));
  CHECK(pieces.list().size() > cut);
  CHECK_FALSE(pieces.measured(times_of(program, pieces.list(), 5.0)));
  CHECK(pieces.seconds(0) <= 0.01);
}

TEST_CASE("a lower limit cuts shorter pieces, and a higher one none longer than the target's") {
  const plan::Program program = program_of({1000, 1000, 1000}, 0.1);
  Pieces pieces(program, gpu());
  pieces.measured(times_of(program, pieces.list(), 0.1));
  const std::size_t before = pieces.list().size();
  CHECK(pieces.limit(0.01));
  CHECK(pieces.list().size() > 30);
  check_complete(program, pieces.list());
  for (std::size_t i = 0; i < pieces.list().size(); ++i) CHECK(pieces.seconds(i) <= 0.01);
  CHECK_FALSE(pieces.limit(0.01));
  CHECK(pieces.limit(10));
  CHECK(pieces.list().size() == before);
}

TEST_CASE("a model too large for a phone is cut into thousands of pieces until it was measured, not a million") {
  const plan::Program program = program_of({1'000'000, 500'000}, 15);
  Pieces pieces(program, gpu());
  CHECK(pieces.limit(0.0005));
  check_complete(program, pieces.list());
  CHECK(pieces.list().size() > 4000);
  CHECK(pieces.list().size() < 4200);
  // The device is ten thousand times as fast, so the budget holds.
  CHECK(pieces.measured(times_of(program, pieces.list(), 0.0015)));
  CHECK(pieces.list().size() < 30);
  for (std::size_t i = 0; i < pieces.list().size(); ++i) CHECK(pieces.seconds(i) <= 0.0005);
}

TEST_CASE(
    "a budget of microseconds cuts a long step into thousands of pieces, not millions, also once it was measured") {
  const plan::Program program = program_of(std::vector<std::uint32_t>(400, 20'000), 0.01);
  const auto times = [&](const Pieces& pieces) { return times_of(program, pieces.list(), 0.0102); };
  Pieces pieces(program, gpu());
  pieces.measured(times(pieces));
  CHECK(pieces.limit(1e-3));
  for (std::size_t i = 0; i < pieces.list().size(); ++i) CHECK(pieces.seconds(i) <= 1e-3);
  for (const double budget : {1e-4, 1e-6}) {
    CAPTURE(budget);
    pieces.limit(budget);
    check_complete(program, pieces.list());
    CHECK(pieces.list().size() > 16'000);
    CHECK(pieces.list().size() < 17'000);
    std::vector<double> slower = times(pieces);
    for (std::size_t i = 0; i < 100; ++i) slower[i] *= 1.5;
    for (int run = 0; run < 3; ++run) CHECK_FALSE(pieces.measured(slower));
  }
}

TEST_CASE("pieces that took no measurable time change nothing") {
  const plan::Program program = program_of({10, 10}, 0.001);
  Pieces pieces(program, gpu());
  const std::vector<double> none(pieces.list().size(), 0);
  CHECK_FALSE(pieces.measured(none));
  CHECK_FALSE(pieces.measured(none));
  check_complete(program, pieces.list());
}

TEST_CASE("times of 0, as of a clock that stands still within a submit, leave what is expected as it was") {
  const plan::Program program = program_of({1000, 1000, 1000}, 0.1);
  Pieces pieces(program, gpu());
  const std::vector<Piece> before = pieces.list();
  const double first = pieces.seconds(0);
  REQUIRE(before.size() > 2);
  for (int run = 0; run < 5; ++run) CHECK_FALSE(pieces.measured(std::vector<double>(before.size(), 0)));
  CHECK(pieces.list() == before);
  CHECK(pieces.seconds(0) == doctest::Approx(first));
  CHECK(pieces.limit(0.01));
  check_complete(program, pieces.list());
  for (std::size_t i = 0; i < pieces.list().size(); ++i) CHECK(pieces.seconds(i) <= 0.01);
  CHECK(pieces.limit(10));
  // One that took no time among others that did.
  std::vector<double> times = times_of(program, pieces.list(), 0.1);
  times.front() = 0;
  CHECK_FALSE(pieces.measured(times));
  CHECK(pieces.list() == before);
  CHECK(pieces.seconds(0) == doctest::Approx(first).epsilon(0.01));
  // A clock that goes is believed.
  int runs = 1;
  while (!pieces.measured(times_of(program, pieces.list(), 1e-3)) && runs < 100) ++runs;
  CHECK(runs < 20);
}

TEST_CASE("one time that is wrong by hours cuts no piece into one for each group") {
  const plan::Program program = program_of({10000, 10000, 10000}, 0.02);
  for (const bool first : {false, true}) {
    CAPTURE(first);
    Pieces pieces(program, gpu());
    if (!first) pieces.measured(times_of(program, pieces.list(), 0.02));
    const std::size_t before = pieces.list().size();
    std::vector<double> times = times_of(program, pieces.list(), 0.02);
    times.back() = 3600e6;
    CHECK(pieces.measured(times));
    CHECK(pieces.list().size() < 200);
    check_complete(program, pieces.list());
    int runs = 0;
    while (pieces.list().size() > before && runs < 100) {
      pieces.measured(times_of(program, pieces.list(), 0.02));
      ++runs;
    }
    CHECK(runs < 30);
  }
}

TEST_CASE("a device that is far slower than expected is believed within a few runs") {
  const plan::Program program = program_of({10000}, 0.01);
  Pieces pieces(program, gpu());
  for (int run = 0; run < 5; ++run) pieces.measured(times_of(program, pieces.list(), 50));
  for (const double time : times_of(program, pieces.list(), 50)) CHECK(time <= 100e3);
}
