#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

using plan::Access;

/// Specialization constants 1 and 2 of shaders/embedding/ids.glsl.
std::vector<std::uint32_t> constants_of_ids(const plan::Lowering& out, plan::TensorId ids) {
  const plan::Layout lay = plan::layout(out.type(ids).shape);
  return {ops::index32(out, lay.columns), ops::index32(out, lay.pitch)};
}

/// Loop rounds of a binary search among `count` entries.
std::int64_t search_rounds(std::int64_t count) {
  return std::int64_t{std::bit_width(static_cast<std::uint32_t>(count))} + 2;
}

/// Sorts ids with their positions; equal ids keep their order. Entries {id, position}, u32.
plan::TensorId lower_sort(plan::Lowering& out, plan::TensorId ids) {
  struct Push {
    std::uint32_t count, length;
  };
  constexpr std::int64_t block = 32;
  const std::int64_t count = elements(out.type(ids).shape);
  const TensorType entries{DType::u32, {2 * count}};
  plan::TensorId sorted = out.workspace("sorted", entries);
  std::vector<std::uint32_t> constants = constants_of_ids(out, ids);
  constants.push_back(block);
  ops::dispatch_flat(out, "sort_blocks", count, ops::index32(out, count),
                     {{ids, Access::read}, {sorted, Access::write}}, constants, {.rounds = block + 1});
  for (std::int64_t length = block; length < count; length *= 2) {
    const plan::TensorId runs = std::exchange(sorted, out.workspace("sorted", entries));
    ops::dispatch_flat(out, "merge_runs", count, Push{ops::index32(out, count), ops::index32(out, length)},
                       {{runs, Access::read}, {sorted, Access::write}}, {}, {.rounds = search_rounds(length)});
  }
  return sorted;
}

/// From ids {...} and dy {..., c}: the gradient {rows, c} of the table.
class EmbeddingGradient final : public graph::Operator {
 public:
  explicit EmbeddingGradient(std::int64_t rows) : rows_(rows) {}

  std::string name() const override { return "embedding_gradient"; }
  graph::Attributes attributes() const override { return {{"rows", rows_}}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    return {{inputs[1].dtype, {rows_, inputs[1].shape.back()}}};
  }

  void lower(plan::Lowering& out) const override {
    const std::int64_t count = elements(out.input_type(0).shape);
    const TensorType dy = out.input_type(1);
    const plan::TensorId sorted = lower_sort(out, out.input(0));
    const plan::TensorId begins = lower_ranges(out, sorted, count);
    // Neither the entries up to a multiple of `length` nor the parts are many more than the root of all.
    const auto length = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
    const std::int64_t parts = plan::divided_up(count, length);
    const plan::TensorId sums = out.workspace("parts", {DType::f32, {parts, dy.shape.back()}});
    lower_parts(out, sorted, count, length, sums);
    struct Push {
      std::uint32_t quads, length;
    };
    const std::int64_t quads = plan::layout(out.type(out.output(0)).shape).quads();
    ops::dispatch_flat(out, ops::variant(out, "embedding_gradient", dy.dtype), quads,
                       Push{ops::index32(out, quads), ops::index32(out, length)},
                       {{sorted, Access::read},
                        {begins, Access::read},
                        {out.input(1), Access::read},
                        {sums, Access::read},
                        {out.output(0), Access::write}},
                       {row_quads(out)}, {.rounds = length + parts + 2});
  }

 private:
  static std::uint32_t row_quads(const plan::Lowering& out) {
    return ops::index32(out, plan::layout(out.input_type(1).shape).quads_per_row());
  }

  /// Where each id's entries begin, and where those of the last one end.
  plan::TensorId lower_ranges(plan::Lowering& out, plan::TensorId sorted, std::int64_t count) const {
    struct Push {
      std::uint32_t count, ids;
    };
    const plan::TensorId begins = out.workspace("begins", {DType::u32, {rows_ + 1}});
    ops::dispatch_flat(out, "find_ranges", rows_ + 1, Push{ops::index32(out, count), ops::index32(out, rows_ + 1)},
                       {{sorted, Access::read}, {begins, Access::write}}, {}, {.rounds = search_rounds(count)});
    return begins;
  }

  static void lower_parts(plan::Lowering& out, plan::TensorId sorted, std::int64_t count, std::int64_t length,
                          plan::TensorId sums) {
    struct Push {
      std::uint32_t invocations, count, length;
    };
    const std::int64_t invocations = plan::layout(out.type(sums).shape).quads();
    ops::dispatch_flat(out, ops::variant(out, "embedding_parts", out.input_type(1).dtype), invocations,
                       Push{ops::index32(out, invocations), ops::index32(out, count), ops::index32(out, length)},
                       {{sorted, Access::read}, {out.input(1), Access::read}, {sums, Access::write}}, {row_quads(out)},
                       {.rounds = length + 1});
  }

  std::int64_t rows_;
};

/// The rows of a table {rows, c} that ids {...} name: {..., c}.
class Embedding final : public graph::Operator {
 public:
  std::string name() const override { return "embedding"; }
  graph::Attributes attributes() const override { return {}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    const TensorType& table = inputs[0];
    const TensorType& ids = inputs[1];
    ops::expect_float(name(), "a table", table);
    ops::expect_rank(name(), "a table", table, 2, "{rows, c}");
    if (ids.dtype != DType::u32) fail(name(), fmt::format("expected ids u32, got {}", to_string(ids)));
    Shape shape = ids.shape;
    shape.push_back(table.shape[1]);
    return {{table.dtype, shape}};
  }

  // dtable = for each row, the sum of dy at the positions with its id
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const std::int64_t rows = call.inputs[0].dim(0);
    return {ops::apply<EmbeddingGradient>({call.inputs[1], *call.cotangents[0]}, rows), std::nullopt};
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t quads, rows;
    };
    const plan::Layout table = plan::layout(out.input_type(0).shape);
    const TensorType& type = out.type(out.output(0));
    const std::int64_t quads = plan::layout(type.shape).quads();
    ops::index32(out, std::max(table.padded_elements(), 4 * quads));
    std::vector<std::uint32_t> constants = constants_of_ids(out, out.input(1));
    constants.insert(constants.begin(), flat_local_size(out.target()));
    constants.push_back(ops::index32(out, table.quads_per_row()));
    out.dispatch({.label = {},
                  .shader = ops::variant(out, "embedding", type.dtype),
                  .constants = std::move(constants),
                  .push = plan::push_bytes(Push{ops::index32(out, quads), ops::index32(out, table.rows)}),
                  .operands = {{.tensor = out.input(0), .access = Access::read, .most_bytes = plan::byte_size(type)},
                               {out.input(1), Access::read},
                               {out.output(0), Access::write}},
                  .groups = plan::groups_for(out.target(), quads, flat_local_size(out.target())),
                  .expression = ops::result_expression(out, out.output(0), 2, 3)});
  }
};

}  // namespace

Tensor embedding(Tensor table, Tensor ids) {
  return ops::apply<Embedding>({table, ids});
}

}  // namespace halfstep
