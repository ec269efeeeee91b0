#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <array>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/values.h"
#include "reference/window.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

void check_both(const Check& check) {
  testing::check_operator(check);
  testing::check_gradient(check);
}

struct Cut {
  Shape x, begin, end, step;
};

struct Border {
  Shape x, before, after;
};

}  // namespace

TEST_CASE("slices begin, step and end anywhere") {
  for (const Cut& c : {Cut{{7}, {2}, {7}, {1}}, Cut{{5, 9}, {1, 4}, {4, 9}, {1, 1}},
                       Cut{{5, 9}, {0, 1}, {5, 8}, {2, 3}}, Cut{{2, 6, 5, 8}, {0, 0, 0, 0}, {2, 6, 5, 8}, {1, 2, 2, 1}},
                       Cut{{2, 3, 4, 3, 6}, {1, 0, 1, 2, 0}, {2, 3, 4, 3, 5}, {1, 2, 1, 1, 2}}}) {
    CAPTURE(to_string(c.x));
    check_both({.name = "slice",
                .build = [=](std::span<const Tensor> x) { return slice(x[0], c.begin, c.end, c.step); },
                .inputs = {{uniform(c.x, 1)}},
                .reference = [=](std::span<const Array> x) { return reference::slice(x[0], c.begin, c.end, c.step); }});
  }
}

TEST_CASE("padding is zero on every side") {
  for (const Border& c :
       {Border{{3}, {2}, {3}}, Border{{5, 6}, {1, 4}, {0, 3}}, Border{{5, 6}, {0, 3}, {2, 0}},
        Border{{2, 3, 2, 8}, {0, 1, 2, 4}, {0, 1, 0, 4}}, Border{{2, 1, 3, 1, 5}, {0, 1, 0, 2, 1}, {1, 0, 0, 0, 1}}}) {
    CAPTURE(to_string(c.x));
    check_both({.name = "pad",
                .build = [=](std::span<const Tensor> x) { return pad(x[0], c.before, c.after); },
                .inputs = {{uniform(c.x, 1)}},
                .reference = [=](std::span<const Array> x) { return reference::pad(x[0], c.before, c.after); }});
  }
}

TEST_CASE("a window of a window is one, where no axis is changed twice") {
  struct Case {
    Cut cut;
    Border border;
    bool joined;
  };
  const Shape x{2, 5, 7, 6};
  for (const Case& c : {Case{{x, {0, 0, 0, 0}, x, {1, 2, 2, 1}}, {{}, {0, 0, 0, 3}, {0, 0, 0, 2}}, true},
                        Case{{x, {0, 1, 0, 0}, {2, 5, 7, 6}, {1, 1, 3, 1}}, {{}, {2, 0, 0, 0}, {0, 0, 0, 4}}, true},
                        Case{{x, {0, 1, 0, 0}, {2, 4, 7, 6}, {1, 1, 1, 1}}, {{}, {0, 2, 0, 1}, {0, 0, 0, 0}}, false},
                        Case{{x, {0, 0, 0, 2}, {2, 5, 7, 6}, {1, 1, 1, 1}}, {{}, {0, 0, 0, 0}, {0, 0, 0, 2}}, false}}) {
    const auto build = [=](Tensor from) {
      return pad(slice(from, c.cut.begin, c.cut.end, c.cut.step), c.border.before, c.border.after);
    };
    check_both({.name = "pad of a slice",
                .build = [=](std::span<const Tensor> from) { return build(from[0]); },
                .inputs = {{uniform(x, 1)}},
                .reference =
                    [=](std::span<const Array> from) {
                      return reference::pad(reference::slice(from[0], c.cut.begin, c.cut.end, c.cut.step),
                                            c.border.before, c.border.after);
                    }});
    Graph graph;
    const Tensor from = graph.input("x", x);
    const Tensor made = build(from);
    const graph::Ir& ir = graph.ir();
    CHECK((ir.nodes[ir.values[made.id()].producer].inputs[0] == from.id()) == c.joined);
  }
}

TEST_CASE("concat joins along any axis") {
  struct Case {
    std::vector<Shape> parts;
    std::int64_t axis;
  };
  for (const Case& c :
       {Case{{{3}, {5}}, 0}, Case{{{2, 3}, {2, 6}, {2, 1}}, -1}, Case{{{2, 3}, {4, 3}, {1, 3}}, 0},
        Case{{{2, 3, 5, 4}, {2, 1, 5, 4}}, 1}, Case{{{2, 2, 3, 8}, {2, 2, 3, 4}}, 3},
        Case{{{2, 1, 2, 3, 1, 3}, {2, 1, 2, 1, 1, 3}}, 3}, Case{{{2, 1, 2, 1, 2, 3}, {2, 1, 2, 1, 2, 2}}, -1}}) {
    Check check;
    check.name = "concat";
    for (const Shape& part : c.parts) check.inputs.push_back({uniform(part, check.inputs.size() + 1)});
    const auto rank = static_cast<std::int64_t>(c.parts.front().size());
    check.build = [=](std::span<const Tensor> x) { return concat({x.begin(), x.end()}, c.axis); };
    check.reference = [=](std::span<const Array> x) {
      return reference::concat(x, static_cast<std::size_t>(c.axis < 0 ? c.axis + rank : c.axis));
    };
    check_both(check);
  }
}

TEST_CASE("slice, pad and concat refuse what cannot be") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 5});
  CHECK_THROWS_WITH_AS(slice(x, {0}, {4}), doctest::Contains("each axis"), Error);
  CHECK_THROWS_WITH_AS(slice(x, {0, 3}, {4, 3}), doctest::Contains("begin < end"), Error);
  CHECK_THROWS_WITH_AS(slice(x, {0, 0}, {4, 6}), doctest::Contains("<= 5"), Error);
  CHECK_THROWS_WITH_AS(slice(x, {0, 0}, {4, 5}, {1, 0}), doctest::Contains("positive step"), Error);
  CHECK_THROWS_WITH_AS(pad(x, {0, -1}, {0, 0}), doctest::Contains("[pad]"), Error);
  CHECK_THROWS_WITH_AS(pad(x, {0, 0}, {0}), doctest::Contains("each axis"), Error);
  CHECK_THROWS_WITH_AS(concat({}, 0), doctest::Contains("at least one"), Error);
  CHECK_THROWS_WITH_AS(concat({x}, 2), doctest::Contains("an axis"), Error);
  CHECK_THROWS_WITH_AS(concat({x, graph.input("y", {4, 6})}, 0), doctest::Contains("alike but for axis 0"), Error);
}
