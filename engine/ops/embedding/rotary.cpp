#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/portable_math.h"
#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

using plan::Access;

constexpr std::size_t powers = 12;  ///< of the ratio of frequencies, as in rotary_table.comp
constexpr std::int64_t most_columns = std::int64_t{2} << powers;
constexpr std::int64_t most_positions = 1 << 24;  ///< that f32 represents

/// A double as the sum of two f32. The upper has half of the bits, so that its products are exact.
struct Wide {
  float high = 0;
  float low = 0;

  Wide() = default;
  explicit Wide(double value)
      : high(static_cast<float>(value)), low(static_cast<float>(value - static_cast<double>(high))) {}
};

/// The push constants of rotary_table.comp.
struct TablePush {
  std::uint32_t invocations;
  std::uint32_t row_quads;
  std::uint32_t offset;
  std::uint32_t unused;
  Wide start;
  Wide ratios[powers];
};
static_assert(sizeof(TablePush) == 120);

/// Rotates pairs of elements of x {..., c} by angles that grow with the position along an axis.
class Rotary final : public graph::Operator {
 public:
  Rotary(const RotaryOptions& options, std::size_t axis, bool backwards)
      : options_(options), axis_(axis), backwards_(backwards) {}

  std::string name() const override { return backwards_ ? "rotary_gradient" : "rotary"; }
  graph::Attributes attributes() const override {
    return {{"halves", options_.pairs == RotaryPairs::halves},
            {"base", options_.base},
            {"position_scale", options_.position_scale},
            {"base_scale", options_.base_scale},
            {"offset", options_.offset},
            {"axis", static_cast<std::int64_t>(axis_)}};
  }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    ops::expect_float(name(), "a tensor", inputs[0]);
    return {inputs[0]};
  }

  // dx = dy rotated back
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {ops::apply<Rotary>({*call.cotangents[0]}, options_, axis_, !backwards_)};
  }

  void lower(plan::Lowering& out) const override {
    const TensorType type = out.type(out.output(0));
    const std::int64_t positions = type.shape[axis_];
    const std::int64_t pairs = type.shape.back() / 2;
    const plan::TensorId table = lower_table(out, positions, pairs);
    std::int64_t inner = 1;
    for (std::size_t i = axis_ + 1; i + 1 < type.shape.size(); ++i) inner *= type.shape[i];
    const std::int64_t quads = plan::layout(type.shape).quads();
    const std::uint32_t local_size = plan::flat_local_size(out.target());
    out.dispatch({.label = {},
                  .shader = ops::variant(out, "rotary", type.dtype),
                  .constants = {local_size, options_.pairs == RotaryPairs::halves, backwards_, ops::index32(out, pairs),
                                ops::index32(out, positions), ops::index32(out, inner)},
                  .push = plan::push_bytes(ops::index32(out, quads)),
                  .operands = {{out.input(0), Access::read}, {table, Access::read}, {out.output(0), Access::write}},
                  .groups = plan::groups_for(out.target(), quads, local_size),
                  .expression = ops::result_expression(out, out.output(0), 2, 3)});
  }

 private:
  /// Cosines and sines {positions, 2, pairs}.
  plan::TensorId lower_table(plan::Lowering& out, std::int64_t positions, std::int64_t pairs) const {
    const auto columns = static_cast<double>(2 * pairs);
    const double scaled = portable::pow(static_cast<double>(options_.base_scale), columns / std::max(columns - 2, 1.0));
    const double base = static_cast<double>(options_.base) * scaled;
    const plan::TensorId table = out.workspace("table", {DType::f32, {positions, 2, pairs}});
    const std::int64_t row_quads = plan::layout({pairs}).quads_per_row();
    TablePush push{};
    push.invocations = ops::index32(out, positions * row_quads);
    push.row_quads = ops::index32(out, row_quads);
    push.offset = ops::index32(out, options_.offset);
    push.start = Wide(static_cast<double>(options_.position_scale) / (2 * std::numbers::pi));
    for (std::size_t i = 0; i < powers; ++i) {
      push.ratios[i] = Wide(portable::pow(base, -std::ldexp(2.0, static_cast<int>(i)) / columns));
    }
    ops::dispatch_flat(out, "rotary_table", push.invocations, push, {{table, Access::write}});
    return table;
  }

  RotaryOptions options_;
  std::size_t axis_;
  bool backwards_;
};

}  // namespace

Tensor rotary(Tensor x, const RotaryOptions& options) {
  const std::int64_t axis = options.axis < 0 ? options.axis + x.rank() : options.axis;
  if (axis < 0 || axis >= x.rank() - 1) {
    fail("rotary",
         fmt::format("expected an axis of positions before the last of {}, got {}", to_string(x.type()), options.axis));
  }
  if (x.dim(-1) % 2 != 0 || x.dim(-1) > most_columns) {
    fail("rotary", fmt::format("expected an even last axis of at most {}, got {}", most_columns, to_string(x.type())));
  }
  const bool positive = options.base > 0 && options.position_scale > 0 && options.base_scale > 0;
  if (!positive || !std::isfinite(options.base * options.position_scale * options.base_scale)) {
    fail("rotary", fmt::format("expected a positive base, position scale and base scale, got {}, {} and {}",
                               options.base, options.position_scale, options.base_scale));
  }
  if (options.offset < 0 || options.offset > most_positions - x.dim(axis)) {
    fail("rotary", fmt::format("expected positions from 0 to {}, got {} from {} on", most_positions, x.dim(axis),
                               options.offset));
  }
  return ops::apply<Rotary>({x}, options, static_cast<std::size_t>(axis), false);
}

}  // namespace halfstep
