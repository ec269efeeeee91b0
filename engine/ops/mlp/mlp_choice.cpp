#include "ops/mlp/mlp_choice.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/philox.h"
#include "graph/dtype.h"
#include "plan/layout.h"

namespace halfstep::ops {
namespace {

using Values = std::vector<float>;

constexpr std::string_view kind_prefix = "mlp ";

/// Kernels differ by type and by width, in steps of 16.
std::string kind_of(DType dtype, std::int64_t width) {
  return fmt::format("{}{} {}", kind_prefix, name(dtype), plan::divided_up(width, 16) * 16);
}

std::string_view name(MlpPass pass) {
  constexpr std::string_view names[] = {"prediction", "forward", "backward"};
  return names[static_cast<std::size_t>(pass)];
}

/// A pass by itself, on inputs of its own.
plan::Trial problem_of(const plan::Lowering& out, MlpPass pass, const MlpForm& form) {
  plan::Trial trial;
  for (std::size_t i = 0; i < form.count(); ++i) trial.inputs.push_back(out.input_type(i));
  TensorType y = trial.inputs[0];
  y.shape.back() = form.layers(std::span<const TensorType>(trial.inputs)).back().weight.shape[1];
  trial.output = pass == MlpPass::backward ? trial.inputs[1] : y;
  if (pass == MlpPass::backward) {
    const std::vector<TensorType> kept = kept_mlp_types(form, trial.inputs);
    trial.inputs.insert(trial.inputs.end(), kept.begin(), kept.end());
    trial.inputs.push_back(y);
  }
  trial.lower = [pass, form](plan::Lowering& alone) {
    alone.lower_as([&](std::span<const Tensor> x) {
      if (pass == MlpPass::prediction) return std::vector{predict_mlp(form, x)};
      if (pass == MlpPass::forward) return std::vector{apply_mlp(form, x).front()};
      std::vector<bool> parameters(form.count(), true);
      parameters[0] = false;
      return std::vector{apply_mlp_gradient(form, parameters, x).front()};
    });
  };
  return trial;
}

/// What checks compute: more than one tile of rows, more columns of x and y than of hidden layers, and sigmoids.
struct Checked {
  std::int64_t rows = 141, in = 0, width = 0, hidden = 2, out = 0;
  MlpForm form;

  explicit Checked(std::int64_t of_width) : in(of_width + 5), width(of_width), out(of_width + 3) {
    const auto ir = std::make_shared<graph::Ir>();
    sigmoid(stand_in(*ir, {4}));
    const std::shared_ptr<const graph::Operator> op = ir->nodes.back().op;
    form = {{op, unary_formulas(*op).value()}, std::vector<bool>(static_cast<std::size_t>(hidden) + 1, true)};
  }
  std::int64_t columns(std::int64_t layer) const { return layer == 0 ? in : layer > hidden ? out : width; }
  /// x, weight and bias of each layer, and dy.
  std::vector<Shape> shapes() const {
    std::vector<Shape> all{{rows, in}};
    for (std::int64_t layer = 0; layer <= hidden; ++layer) {
      all.push_back({columns(layer), columns(layer + 1)});
      all.push_back({columns(layer + 1)});
    }
    all.push_back({rows, out});
    return all;
  }
};

Values numbers(const Shape& shape, DType dtype, std::uint64_t seed) {
  Values values(static_cast<std::size_t>(elements(shape)));
  const float bound = shape.size() == 2 && seed > 1 ? 2 / std::sqrt(static_cast<float>(shape[0])) : 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t word =
        process::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, process::philox_key(seed))[0];
    values[i] = graph::stored(dtype, (static_cast<float>(word) * 0x1p-31F - 1) * bound);
  }
  return values;
}

/// A matrix of doubles.
struct Matrix {
  std::int64_t rows, columns;
  std::vector<double> values;

  Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  double& at(std::int64_t r, std::int64_t c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  double at(std::int64_t r, std::int64_t c) const { return values[static_cast<std::size_t>(r * columns + c)]; }
};

Matrix matrix_of(const Shape& shape, const Values& values) {
  Matrix m(shape.size() == 1 ? 1 : shape[0], shape.back());
  std::ranges::copy(values, m.values.begin());
  return m;
}

Matrix transposed(const Matrix& m) {
  Matrix t(m.columns, m.rows);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t c = 0; c < m.columns; ++c) t.at(c, r) = m.at(r, c);
  }
  return t;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      for (std::int64_t column = 0; column < b.columns; ++column) c.at(row, column) += a.at(row, k) * b.at(k, column);
    }
  }
  return c;
}

Values floats_of(const Matrix& m) {
  return {m.values.begin(), m.values.end()};
}

/// y, then dx and the gradients for each weight and bias, of inputs in the order of Checked::shapes().
std::vector<Values> expected_of(const Checked& checked, const std::vector<Values>& inputs) {
  const std::vector<Shape> shapes = checked.shapes();
  const auto input = [&](std::int64_t i) {
    return matrix_of(shapes[static_cast<std::size_t>(i)], inputs[static_cast<std::size_t>(i)]);
  };
  std::vector<Matrix> results{input(0)};
  for (std::int64_t layer = 0; layer <= checked.hidden; ++layer) {
    Matrix y = product(results.back(), input(1 + 2 * layer));
    const Matrix bias = input(2 + 2 * layer);
    for (std::int64_t row = 0; row < y.rows; ++row) {
      for (std::int64_t column = 0; column < y.columns; ++column) {
        const double v = y.at(row, column) + bias.at(0, column);
        y.at(row, column) = layer == checked.hidden ? v : 1 / (1 + std::exp(-v));
      }
    }
    results.push_back(std::move(y));
  }
  std::vector<Values> expected;  // from the last, backwards
  Matrix gradient = input(static_cast<std::int64_t>(inputs.size()) - 1);
  for (std::int64_t layer = checked.hidden; layer >= 0; --layer) {
    const Matrix& x = results[static_cast<std::size_t>(layer)];
    Matrix ones(1, x.rows);
    std::ranges::fill(ones.values, 1.0);
    expected.push_back(floats_of(product(ones, gradient)));
    expected.push_back(floats_of(product(transposed(x), gradient)));
    gradient = product(gradient, transposed(input(1 + 2 * layer)));
    if (layer == 0) continue;
    for (std::size_t i = 0; i < gradient.values.size(); ++i) gradient.values[i] *= x.values[i] * (1 - x.values[i]);
  }
  expected.push_back(floats_of(gradient));
  expected.push_back(floats_of(results.back()));
  std::ranges::reverse(expected);
  return expected;
}

/// The result number `which` of expected_of().
void lower_checked(plan::Lowering& out, const MlpForm& form, std::size_t which) {
  out.lower_as([&](std::span<const Tensor> x) {
    std::vector<Tensor> inputs(x.begin(), x.end() - 1);
    const std::vector<Tensor> results = apply_mlp(form, inputs);
    if (which == 0) return std::vector{results[0]};
    inputs.insert(inputs.end(), results.begin() + 1, results.end());
    inputs.push_back(x.back());
    return std::vector{apply_mlp_gradient(form, std::vector(form.count(), true), inputs)[which - 1]};
  });
}

/// The check of result number `which` of expected_of(), which is `expected`.
plan::Trial trial_of(const Checked& checked, DType dtype, const std::vector<Values>& inputs, const Values& expected,
                     std::size_t which) {
  const std::vector<Shape> shapes = checked.shapes();
  const graph::TypeInfo& info = graph::info(dtype);
  const double unit = info.narrow == nullptr ? 0x1p-20 : static_cast<double>(info.narrow->unit);
  plan::Trial trial;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    trial.inputs.push_back({dtype, shapes[i]});
    trial.values.push_back(inputs[i]);
  }
  trial.output = {dtype, which == 0 ? Shape{checked.rows, checked.out} : shapes[which - 1]};
  trial.expected = expected;
  // What is between layers is rounded before the sums that are compared.
  const float largest = std::ranges::max(trial.expected, {}, [](float v) { return std::abs(v); });
  trial.allowed_difference = 8 * unit * static_cast<double>(std::abs(largest));
  trial.lower = [form = checked.form, which](plan::Lowering& out) { lower_checked(out, form, which); };
  return trial;
}

/// The type and width of a kind.
std::pair<DType, std::int64_t> parsed(std::string_view kind) {
  for (const graph::TypeInfo& info : graph::all_types()) {
    for (std::int64_t width = 16; width <= most_mlp_width; width += 16) {
      if (kind_of(info.dtype, width) == kind) return {info.dtype, width};
    }
  }
  fail("tune", fmt::format("expected a kind of network, got '{}'", kind));
}

}  // namespace

MlpKernel chosen_mlp_kernel(plan::Lowering& out, MlpPass pass, const MlpForm& form) {
  const std::vector<MlpKernel> kernels = mlp_kernels(out, pass, form);
  plan::Choice choice;
  choice.problem = problem_of(out, pass, form);
  const MlpExtents extents(form, choice.problem.inputs);
  choice.kind = kind_of(out.input_type(0).dtype, extents.width);
  choice.key = fmt::format("{} {} {}", choice.kind, name(pass), extents.rows);
  for (std::int64_t layer = 0; layer <= extents.hidden + 1; ++layer) {
    choice.key += fmt::format("x{}", layer > extents.hidden ? extents.out : extents.k(layer));
  }
  for (const graph::Attribute& attribute : form.attributes())
    choice.key += fmt::format(" {}", graph::text_of(attribute));
  for (const MlpKernel& kernel : kernels) choice.candidates.push_back({kernel.name, kernel.risky()});
  choice.rule_is_known = out.target().cpu;
  choice.flops = (pass == MlpPass::backward ? 2 : 1) * extents.flops();
  return kernels[out.choose(std::move(choice))];
}

bool is_mlp(std::string_view kind) {
  return kind.starts_with(kind_prefix);
}

std::vector<plan::Trial> mlp_checks(std::string_view kind) {
  const auto [dtype, width] = parsed(kind);
  const Checked checked(width);
  const std::vector<Shape> shapes = checked.shapes();
  std::vector<Values> inputs;
  for (const Shape& shape : shapes) inputs.push_back(numbers(shape, dtype, inputs.size() + 1));
  std::vector<plan::Trial> trials;
  const std::vector<Values> expected = expected_of(checked, inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    trials.push_back(trial_of(checked, dtype, inputs, expected[i], i));
  }
  if (dtype != DType::f16) return trials;
  // Matrix units may take subnormal numbers for 0, as gradients are between these layers: see gemm_checks().
  for (float& v : inputs.back()) v = graph::stored(dtype, v * 0x1p-12F);
  trials.push_back(trial_of(checked, dtype, inputs, expected_of(checked, inputs)[1], 1));
  trials.back().allowed_difference += 0x1p-22;
  return trials;
}

}  // namespace halfstep::ops
