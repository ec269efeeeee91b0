#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "passes/backward.h"
#include "reference/array.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

Array rows_of(const Array& table, const Array& ids) {
  Shape shape = ids.shape;
  shape.push_back(table.shape[1]);
  const std::size_t columns = table.extent(1);
  Array y(shape);
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const double id = ids.values[i / columns];
    if (id == static_cast<double>(ignored_label)) continue;
    const bool found = id < static_cast<double>(table.shape[0]);
    y.values[i] = found ? table.values[static_cast<std::size_t>(id) * columns + i % columns]
                        : std::numeric_limits<double>::quiet_NaN();
  }
  return y;
}

Check embedding_check(const Shape& table, Array ids) {
  return {.name = "embedding " + to_string(table) + " " + to_string(ids.shape),
          .build = [](std::span<const Tensor> x) { return embedding(x[0], x[1]); },
          .inputs = {{uniform(table, 1)}, {std::move(ids), testing::Kind::labels}},
          .reference = [](std::span<const Array> x) { return rows_of(x[0], x[1]); }};
}

Array ids_for(const Shape& shape, std::int64_t rows, std::uint64_t seed = 2) {
  return testing::whole(shape, seed, static_cast<std::uint32_t>(rows));
}

}  // namespace

TEST_CASE("embedding") {
  for (const Shape& ids : {Shape{}, Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 3, 4}, Shape{2111}}) {
    for (const Shape& table : {Shape{1, 1}, Shape{11, 5}, Shape{13, 8}}) {
      testing::check_operator(embedding_check(table, ids_for(ids, table[0])));
    }
  }
}

TEST_CASE("gradient of embedding: sums over the positions of each row") {
  for (const Shape& ids : {Shape{}, Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 3, 4}}) {
    for (const Shape& table : {Shape{1, 1}, Shape{11, 5}, Shape{13, 8}}) {
      Check check = embedding_check(table, ids_for(ids, table[0]));
      check.magnitude = 1;  // of the terms of a sum
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("gradient of embedding at many positions, most of which name one row") {
  for (const std::int64_t count : {31, 32, 33, 64, 65, 997, 1201}) {
    Array ids = ids_for({count}, 5);
    for (std::size_t i = 0; i < ids.values.size(); ++i) {
      if (i % 8 != 3) ids.values[i] = 2;
    }
    Check check = embedding_check({5, 3}, ids);
    check.magnitude = static_cast<double>(count) / 4;
    testing::check_gradient(check);
  }
}

TEST_CASE("ids that are no rows give NaN, and the ignored id zeros without a gradient") {
  Array ids = ids_for({3, 5}, 7);
  ids.values[4] = 7;
  ids.values[6] = 4294967294.0;
  ids.values[9] = static_cast<double>(ignored_label);
  testing::check_operator(embedding_check({7, 6}, ids));
  for (const std::size_t i : {4U, 6U}) ids.values[i] = static_cast<double>(ignored_label);
  testing::check_gradient(embedding_check({7, 6}, ids));
}

TEST_CASE("a table that is also the last product's weight is given both gradients") {
  Check check = embedding_check({7, 6}, ids_for({5}, 7));
  check.name = "tied weights";
  check.build = [](std::span<const Tensor> x) { return matmul(embedding(x[0], x[1]), x[0], {.transpose_b = true}); };
  check.reference = [](std::span<const Array> x) {
    const Array rows = rows_of(x[0], x[1]);
    Array y({5, 7});
    for (std::size_t i = 0; i < 35; ++i) {
      for (std::size_t k = 0; k < 6; ++k) y.values[i] += rows.values[i / 7 * 6 + k] * x[0].values[i % 7 * 6 + k];
    }
    return y;
  };
  check.magnitude = 8;
  testing::check_operator(check);
  check.roundings = 3;
  testing::check_gradient(check);
}

TEST_CASE("learned positions are added to an embedding, in its kernel") {
  Check check = embedding_check({7, 6}, ids_for({2, 5}, 7));
  check.inputs.push_back({uniform({5, 6}, 4)});
  check.build = [](std::span<const Tensor> x) { return add(embedding(x[0], x[1]), x[2]); };
  check.reference = [](std::span<const Array> x) {
    Array y = rows_of(x[0], x[1]);
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += x[2].values[i % 30];
    return y;
  };
  check.roundings = 2;
  testing::check_operator(check);
  testing::check_gradient(check);
}

TEST_CASE("beyond the limits of drivers: an embedding of a million positions, and its gradient") {
  Check check = embedding_check({5, 3}, ids_for({1'000'001}, 5));
  check.dtypes = {DType::f32};
  testing::check_operator(check);
  // All positions name one row, whose gradient is their number; more than one loop may count.
  const std::int64_t limit = std::min<std::int64_t>(testing::context().target().max_rounds, 65'535);
  const std::int64_t count = limit < 65'535 ? 20 * limit : 200'001;
  check.inputs = {{uniform({3, 2}, 1)}, {Array({count}, 1.0), testing::Kind::labels}, {Array({}, 1.0)}};
  check.build = [](std::span<const Tensor> x) {
    const Tensor loss = sum(embedding(x[0], x[1]));
    const graph::ValueId wanted[] = {x[0].id()};
    graph::Ir& ir = graph::ir_of(loss);
    return ir.tensor(passes::add_backward(ir, loss.id(), x[2].id(), wanted)[0]);
  };
  check.reference = [=](std::span<const Array>) {
    const auto n = static_cast<double>(count);
    return Array({3, 2}, {0, 0, n, n, 0, 0});
  };
  check.arithmetic = 0;
  testing::check_operator(check);
}

TEST_CASE("embedding says what it cannot take") {
  Graph graph;
  const Tensor table = graph.input("table", {7, 6});
  const Tensor ids = graph.input("ids", {5}, DType::u32);
  CHECK_THROWS_WITH_AS(embedding(table, table), "[embedding] expected ids u32, got f32 {7, 6}", Error);
  CHECK_THROWS_WITH_AS(embedding(graph.input("x", {7}), ids), "[embedding] expected a table {rows, c}, got f32 {7}",
                       Error);
}
