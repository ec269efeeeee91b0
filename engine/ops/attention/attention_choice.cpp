#include "ops/attention/attention_choice.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/philox.h"
#include "graph/dtype.h"

namespace halfstep::ops {
namespace {

using Values = std::vector<float>;

std::string kind_of(DType dtype) {
  return fmt::format("attention {}", name(dtype));
}

/// What a trial stores as its output.
enum class Wanted : std::uint8_t { y, dq, dk, dv };

/// Attention of q, k and v, and for gradients also of dy, which are inputs 0 to 3. What is not wanted is stored in a
/// workspace.
void lower_alone(plan::Lowering& out, const AttentionSettings& settings, Wanted wanted) {
  const auto result = [&](Wanted which, std::string_view name, const TensorType& type) {
    return which == wanted ? out.output(0) : out.workspace(name, type);
  };
  const TensorType q = out.input_type(0);
  const TensorType k = out.input_type(1);
  const TensorType v = out.input_type(2);
  const TensorType statistic{DType::f32, {q.shape[0], q.shape[1], q.shape[2]}};
  AttentionTensors tensors{.q = out.input(0), .k = out.input(1), .v = out.input(2)};
  tensors.y = result(Wanted::y, "y", {q.dtype, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}});
  tensors.largest = out.workspace("largest", statistic);
  tensors.inverse_total = out.workspace("inverse total", statistic);
  lower_attention(out, AttentionPass::forward, tensors, settings);
  if (wanted == Wanted::y) return;
  tensors.dy = out.input(3);
  tensors.delta = out.workspace("dy . y", statistic);
  tensors.dq = result(Wanted::dq, "dq", q);
  tensors.dk = result(Wanted::dk, "dk", k);
  tensors.dv = result(Wanted::dv, "dv", v);
  lower_attention(out, AttentionPass::queries, tensors, settings);
  lower_attention(out, AttentionPass::keys, tensors, settings);
}

/// Two heads of queries share one of keys; a query sees the keys up to its own place. More than one tile of each, and
/// of quads.
struct Checked {
  static constexpr std::int64_t heads = 2, queries = 37, keys = 45, c = 40, d = 24;
  AttentionSettings settings{.causal = true, .scale = 0.3F};
  std::array<Shape, 4> shapes{Shape{1, heads, queries, c}, Shape{1, 1, keys, c}, Shape{1, 1, keys, d},
                              Shape{1, heads, queries, d}};
};

Values numbers(const Shape& shape, DType dtype, std::uint64_t seed) {
  Values values(static_cast<std::size_t>(elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t word =
        process::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, process::philox_key(seed))[0];
    values[i] = graph::stored(dtype, static_cast<float>(word) * 0x1p-31F - 1);
  }
  return values;
}

double dot(const Values& a, std::int64_t row_a, const Values& b, std::int64_t row_b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    sum += static_cast<double>(a[static_cast<std::size_t>(row_a * width + i)]) *
           static_cast<double>(b[static_cast<std::size_t>(row_b * width + i)]);
  }
  return sum;
}

/// Adds `factor` times a row of `from` to one of `to`.
void add_row(Values& to, std::int64_t to_row, double factor, const Values& from, std::int64_t from_row,
             std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) {
    to[static_cast<std::size_t>(to_row * width + i)] +=
        static_cast<float>(factor * static_cast<double>(from[static_cast<std::size_t>(from_row * width + i)]));
  }
}

/// y, dq, dk and dv of the values of q, k, v and dy.
std::array<Values, 4> expected_of(const Checked& checked, const std::vector<Values>& x) {
  std::array<Values, 4> results;
  constexpr std::array<std::size_t, 4> like{3, 0, 1, 2};
  for (std::size_t i = 0; i < 4; ++i) results[i].resize(x[like[i]].size());
  auto& [y, dq, dk, dv] = results;
  for (std::int64_t row = 0; row < Checked::heads * Checked::queries; ++row) {
    const std::int64_t seen = row % Checked::queries + 1;
    std::vector<double> p;
    double total = 0;
    double delta = 0;
    for (std::int64_t key = 0; key < seen; ++key) {
      p.push_back(std::exp(dot(x[0], row, x[1], key, Checked::c) * static_cast<double>(checked.settings.scale)));
      total += p.back();
    }
    for (std::int64_t key = 0; key < seen; ++key) {
      p[static_cast<std::size_t>(key)] /= total;
      delta += p[static_cast<std::size_t>(key)] * dot(x[3], row, x[2], key, Checked::d);
    }
    for (std::int64_t key = 0; key < seen; ++key) {
      const double weight = p[static_cast<std::size_t>(key)];
      const double ds =
          weight * (dot(x[3], row, x[2], key, Checked::d) - delta) * static_cast<double>(checked.settings.scale);
      add_row(y, row, weight, x[2], key, Checked::d);
      add_row(dq, row, ds, x[1], key, Checked::c);
      add_row(dk, key, ds, x[0], row, Checked::c);
      add_row(dv, key, weight, x[3], row, Checked::d);
    }
  }
  return results;
}

/// `values` times 2^-16: subnormal numbers of f16.
Values made_subnormal(Values values, DType dtype) {
  for (float& v : values) v = graph::stored(dtype, v * 0x1p-16F);
  return values;
}

/// The check of one result.
plan::Trial trial_of(const Checked& checked, const graph::TypeInfo& type, const std::vector<Values>& inputs,
                     Wanted wanted) {
  constexpr std::array<std::size_t, 4> like{3, 0, 1, 2};
  const auto which = static_cast<std::size_t>(wanted);
  const double unit = type.narrow == nullptr ? 0x1p-20 : static_cast<double>(type.narrow->unit);
  plan::Trial trial;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    trial.inputs.push_back({type.dtype, checked.shapes[i]});
    trial.values.push_back(inputs[i]);
  }
  trial.output = {type.dtype, checked.shapes[like[which]]};
  trial.expected = expected_of(checked, inputs)[which];
  // y and dy are stored, and weights rounded for products, before the sums that are compared.
  const float largest = std::ranges::max(trial.expected, {}, [](float v) { return std::abs(v); });
  trial.allowed_difference = 8 * unit * static_cast<double>(std::abs(largest));
  trial.lower = [checked, wanted](plan::Lowering& out) { lower_alone(out, checked.settings, wanted); };
  return trial;
}

}  // namespace

plan::Choice attention_choice(const plan::Lowering& out, AttentionPass pass, const AttentionTensors& tensors,
                              const AttentionSettings& settings, const std::vector<AttentionKernel>& kernels) {
  const TensorType q = out.type(tensors.q);
  const TensorType k = out.type(tensors.k);
  const TensorType v = out.type(tensors.v);
  const bool forward = pass == AttentionPass::forward;
  plan::Choice choice;
  choice.kind = kind_of(q.dtype);
  choice.key = fmt::format("{} {} {}x{}x{}x{}x{} {}+{}{}{}", choice.kind, forward ? "forward" : "gradients", q.shape[0],
                           q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3],
                           settings.causal ? " causal" : "",
                           settings.window > 0 ? fmt::format(" window {}", settings.window) : "");
  for (const AttentionKernel& kernel : kernels) choice.candidates.push_back({kernel.name, kernel.risky});
  choice.rule_is_known = out.target().cpu;
  const auto scores = static_cast<double>(q.shape[0] * q.shape[1] * q.shape[2]) * static_cast<double>(k.shape[2]);
  choice.flops = (forward ? 2 : 5) * scores * static_cast<double>(q.shape[3] + v.shape[3]);
  // Masks, segments and dropout cost all kernels the same.
  const AttentionSettings timed{.causal = settings.causal, .window = settings.window, .scale = settings.scale};
  choice.problem.inputs = {q, k, v};
  TensorType y = q;
  y.shape[3] = v.shape[3];
  if (!forward) choice.problem.inputs.push_back(y);
  choice.problem.output = forward ? y : q;
  choice.problem.lower = [timed, forward](plan::Lowering& alone) {
    lower_alone(alone, timed, forward ? Wanted::y : Wanted::dq);
  };
  return choice;
}

std::vector<plan::Trial> attention_checks(std::string_view kind) {
  const auto type =
      std::ranges::find_if(graph::all_types(), [&](const graph::TypeInfo& t) { return kind_of(t.dtype) == kind; });
  if (type == std::end(graph::all_types())) fail("tune", fmt::format("expected a kind of attention, got '{}'", kind));
  const Checked checked;
  std::vector<Values> inputs;
  for (const Shape& shape : checked.shapes) inputs.push_back(numbers(shape, type->dtype, inputs.size() + 1));
  std::vector<plan::Trial> trials;
  for (const Wanted wanted : {Wanted::y, Wanted::dq, Wanted::dk, Wanted::dv}) {
    trials.push_back(trial_of(checked, *type, inputs, wanted));
  }
  if (type->dtype != DType::f16) return trials;
  // Matrix units may take subnormal numbers for 0: see gemm_checks().
  for (const auto& [input, wanted] : {std::pair{2, Wanted::y}, {3, Wanted::dv}}) {
    std::vector<Values> small = inputs;
    small[static_cast<std::size_t>(input)] = made_subnormal(small[static_cast<std::size_t>(input)], type->dtype);
    trials.push_back(trial_of(checked, *type, small, wanted));
    trials.back().allowed_difference += 0x1p-24;
  }
  return trials;
}

}  // namespace halfstep::ops
