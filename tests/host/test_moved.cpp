// What was moved from throws Error wherever it is used, or has kept what it refers to.
#include <halfstep/halfstep.h>
#include <halfstep/text.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "harness/errors.h"

namespace halfstep {
namespace {

using testing::error_of;

// NOLINTBEGIN(bugprone-use-after-move): that is what these tests are about

TEST_CASE("moved: a graph and a scope that were moved from refuse what they are asked for") {
  const std::string text = "[graph] expected a graph, got one that was moved from";
  Graph from;
  const Graph to = std::move(from);
  CHECK(error_of([&] { from.input("x", {1}); }) == text);
  CHECK(error_of([&] { from.root(); }) == text);
  CHECK(error_of([&] { static_cast<void>(from.parameter_count()); }) == text);
  CHECK(error_of([&] { static_cast<void>(to_string(from)); }) == text);
  CHECK(error_of([&] { static_cast<void>(from == to); }) == text);
  Graph graph;
  Scope outer = graph.root() / "outer";
  const Scope inner = std::move(outer);
  CHECK(inner.state("x", {1}, constant(0)).name() == "outer/x");
  CHECK(error_of([&] { (outer / "inner").parameter("x", {1}, constant(0)); }) ==
        "[graph] expected a scope of a graph, got one that was moved from");
}

TEST_CASE("moved: a tokenizer, an optimizer and a sampler keep what they had") {
  Tokenizer tokenizer = Tokenizer::bytes();
  const Tokenizer other = std::move(tokenizer);
  CHECK(tokenizer.encode("a") == other.encode("a"));
  Optimizer optimizer = Sgd{.rate = 0.5F};
  const Optimizer second = std::move(optimizer);
  CHECK(&*optimizer == &*second);
  BatchSampler sampler = BatchSampler::training({0, 1, 1, 0}, 2, 1);
  static_cast<void>(sampler.batch(0));
  BatchSampler moved = std::move(sampler);
  for (int step = 0; step < 2; ++step) {
    CHECK(std::ranges::equal(sampler.batch(step), moved.batch(step)));
    CHECK(sampler.bucket(step) == moved.bucket(step));
  }
}

// NOLINTEND(bugprone-use-after-move)

}  // namespace
}  // namespace halfstep
