#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

using plan::Access;

/// Bytes are moved in pairs of words, of which every row has a whole number.
constexpr std::int64_t pair_bytes = 8;

std::int64_t pairs_of(const TensorType& type) {
  return static_cast<std::int64_t>(plan::byte_size(type)) / pair_bytes;
}

/// x {n, g, positions, c} with rows {n, g, count, c} from position first {n} on.
class StoreRows final : public graph::Operator {
 public:
  std::string name() const override { return "store_rows"; }
  graph::Attributes attributes() const override { return {}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 3);
    const TensorType& x = inputs[0];
    ops::expect_same_float(name(), x, inputs[1]);
    ops::expect_rank(name(), "x", x, 4, "{n, g, positions, c}");
    Shape rows = x.shape;
    if (inputs[1].shape.size() == 4) rows[2] = inputs[1].shape[2];
    if (inputs[1].shape != rows) {
      fail(name(), fmt::format("expected rows {{n, g, count, c}} for {}, got {}", to_string(x), to_string(inputs[1])));
    }
    if (inputs[2] != TensorType{DType::u32, {x.shape[0]}}) {
      fail(name(), fmt::format("expected first positions u32 {{{}}}, got {}", x.shape[0], to_string(inputs[2])));
    }
    return {x};
  }

  /// What it stores is read by products.
  graph::Numerics numerics() const override { return graph::Numerics::product; }
  bool works_in_place() const override { return true; }

  void lower(plan::Lowering& out) const override {
    const TensorType x = out.input_type(0);
    const TensorType rows = out.input_type(1);
    const std::uint32_t x_pairs = ops::index32(out, pairs_of(x));
    if (out.input(0) != out.output(0)) {
      ops::dispatch_flat(out, "copy", x_pairs, x_pairs, {{out.input(0), Access::read}, {out.output(0), Access::write}});
    }
    const std::int64_t pairs = pairs_of(rows);
    const std::int64_t count = rows.shape[2];
    const auto row_pairs = static_cast<std::uint32_t>(pairs / (rows.shape[0] * rows.shape[1] * count));
    ops::dispatch_flat(
        out, "store_rows", pairs, ops::index32(out, pairs),
        {{out.input(1), Access::read}, {out.input(2), Access::read}, {out.output(0), Access::read_write}},
        {row_pairs, ops::index32(out, count), ops::index32(out, x.shape[1]), ops::index32(out, x.shape[2])});
  }
};

}  // namespace

Tensor store_rows(Tensor x, Tensor rows, Tensor first) {
  return ops::apply<StoreRows>({x, rows, first});
}

}  // namespace halfstep
