#include "ops/gemm/gemm_choice.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/philox.h"
#include "graph/dtype.h"
#include "ops/conv/conv2d.h"
#include "ops/gemm/float8.h"

namespace halfstep::ops {
namespace {

using Values = std::vector<float>;

std::string kind_of(const Problem& problem) {
  return fmt::format("gemm {} {} {}", name(problem.operands), problem.float8 ? "float8" : name(problem.dtype),
                     problem.float16_partials ? "f16" : "f32");
}

/// The part of the key with a convolution's step, divisor and tap step, which also affect its speed, and the extents of
/// what Winograd's algorithm computes in tiles; empty for matrices, or if there is none of these.
std::string walk_of(const Gemm& gemm, const Problem& problem) {
  if (gemm.operands < Operands::patches_row) return "";
  const Patches& patches = gemm.patches;
  std::string walk;
  if (patches.step != Pair{1, 1}) walk += fmt::format(" step {}x{}", patches.step[0], patches.step[1]);
  if (patches.divided()) walk += fmt::format(" over {}x{}", patches.divisor[0], patches.divisor[1]);
  if (patches.tap_step != Pair{1, 1}) walk += fmt::format(" taps {}x{}", patches.tap_step[0], patches.tap_step[1]);
  if (problem.winograd_tiles > 0) walk += fmt::format(" tiles of {}x{}", patches.grid[0], patches.grid[1]);
  return walk;
}

/// The problem of that kind, without sizes.
Problem problem_of(std::string_view kind) {
  Problem problem;
  for (int operands = 0; operands <= static_cast<int>(Operands::pixels_row); ++operands) {
    for (const graph::TypeInfo& type : graph::all_types()) {
      for (const auto& [float16_partials, float8] : {std::pair{false, false}, {true, false}, {false, true}}) {
        problem.operands = static_cast<Operands>(operands);
        problem.dtype = float8 ? DType::f16 : type.dtype;
        problem.float16_partials = float16_partials;
        problem.float8 = float8;
        if (kind_of(problem) == kind) return problem;
      }
    }
  }
  fail("tune", fmt::format("expected a kind of matrix product, got '{}'", kind));
}

/// Calls `visit` with the indices in a, b and c of every term a b that is added to c.
using Terms = std::function<void(const std::function<void(std::size_t, std::size_t, std::size_t)>& visit)>;

/// A GEMM to be checked: its tensors and its definition.
struct Definition {
  Shape a;
  Shape b;
  Shape c;
  std::int64_t longest = 0;  ///< number of terms of a sum
  Terms terms;
  std::function<void(plan::Lowering&)> lower;
};

std::size_t at(std::int64_t i, std::int64_t j, std::int64_t columns) {
  return static_cast<std::size_t>(i * columns + j);
}

Definition matrices(Operands operands, bool float8) {
  const bool turn_a = operands == Operands::col_row || operands == Operands::col_col;
  const bool turn_b = operands == Operands::row_col || operands == Operands::col_col;
  constexpr std::int64_t m = 133;
  constexpr std::int64_t n = 125;  // 128 with padding: tiles of several widths cover it
  constexpr std::int64_t k = 137;
  Definition made;
  made.a = turn_a ? Shape{k, m} : Shape{m, k};
  made.b = turn_b ? Shape{n, k} : Shape{k, n};
  made.c = {m, n};
  made.longest = k;
  made.terms = [=](const auto& visit) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t l = 0; l < k; ++l) {
          visit(turn_a ? at(l, i, m) : at(i, l, k), turn_b ? at(j, l, k) : at(l, j, n), at(i, j, n));
        }
      }
    }
  };
  made.lower = [=](plan::Lowering& out) {
    Gemm gemm;
    gemm.operands = operands;
    gemm.a = out.input(0);
    gemm.b = out.input(1);
    gemm.c = out.output(0);
    gemm.rows = m;
    gemm.columns = n;
    gemm.k = k;
    gemm.partials = out.partials().matmul;
    gemm.float8 = float8;
    lower_gemm(out, gemm);
  };
  return made;
}

/// Calls `visit` with the indices in x, w and y of every term x w of a convolution y.
void convolution_terms(const Convolution& convolution,
                       const std::function<void(std::size_t, std::size_t, std::size_t)>& visit) {
  const Shape& x = convolution.images;
  const Shape& w = convolution.weight;
  const Shape y = convolution.output("tune");
  const Conv2dOptions& options = convolution.options;
  const auto tap = [&](std::int64_t position, std::int64_t line, std::int64_t ky, std::int64_t kx) {
    const std::int64_t row = line % y[1] * options.stride[0] + ky - options.padding[0];
    const std::int64_t column = position * options.stride[1] + kx - options.padding[1];
    if (row < 0 || row >= x[1] || column < 0 || column >= x[2]) return;
    const std::int64_t pixel = (line / y[1] * x[1] + row) * x[2] + column;
    for (std::int64_t ci = 0; ci < w[2]; ++ci) {
      for (std::int64_t co = 0; co < w[3]; ++co) {
        visit(at(pixel, ci, w[2]), at((ky * w[1] + kx) * w[2] + ci, co, w[3]), at(line * y[2] + position, co, w[3]));
      }
    }
  };
  for (std::int64_t line = 0; line < y[0] * y[1]; ++line) {
    for (std::int64_t position = 0; position < y[2]; ++position) {
      for (std::int64_t t = 0; t < w[0] * w[1]; ++t) tap(position, line, t / w[1], t % w[1]);
    }
  }
}

Definition convolution(Operands operands, const Convolution& conv) {
  const Shape output = conv.output("tune");
  Definition made;
  if (operands == Operands::patches_row) {
    made = {conv.images, conv.weight,
            output,      conv.taps() * conv.in_channels(),
            {},          [=](plan::Lowering& out) { lower_conv2d(out, conv); }};
    made.terms = [=](const auto& visit) { convolution_terms(conv, visit); };
  } else if (operands == Operands::patches_col) {
    made = {output,      conv.weight,
            conv.images, conv.taps() * conv.out_channels(),
            {},          [=](plan::Lowering& out) { lower_conv2d_data_gradient(out, conv); }};
    made.terms = [=](const auto& visit) {
      convolution_terms(conv, [&](std::size_t x, std::size_t w, std::size_t y) { visit(y, w, x); });
    };
  } else {
    made = {conv.images, output,
            conv.weight, output[0] * output[1] * output[2],
            {},          [=](plan::Lowering& out) {
              lower_conv2d_weight_gradient(out, conv); }};
    made.terms = [=](const auto& visit) {
      convolution_terms(conv, [&](std::size_t x, std::size_t w, std::size_t y) { visit(x, y, w); });
    };
  }
  return made;
}

Definition definition_of(const Problem& problem) {
  if (problem.operands < Operands::patches_row) return matrices(problem.operands, problem.float8);
  return convolution(problem.operands, {{3, 9, 11, 6}, {3, 2, 6, 77}, {.stride = {1, 2}, .padding = {1, 1}}});
}

/// One that Winograd's algorithm computes, and kernels whose taps share pixels.
Definition convolution_3x3(Operands operands) {
  return convolution(operands, {{3, 9, 13, 6}, {3, 3, 6, 70}, {.padding = {1, 2}}});
}

/// What the operands of a check are: whole numbers from -1 to 1, whose sums narrow types hold, or any in that range; or
/// whole ones scaled so that those of A, or of B, are subnormal in f16, or in float8, and their products are not.
enum class Numbers : std::uint8_t { whole, any, subnormal_a, subnormal_b };

/// Numbers as the device will see them, the whole ones times `scale`.
Values numbers(const Shape& shape, const Problem& problem, bool whole, float scale, std::uint64_t seed) {
  Values values(static_cast<std::size_t>(elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t word =
        process::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, process::philox_key(seed))[0];
    const float value = static_cast<float>(word) * 0x1p-31F - 1;
    const float wanted = whole ? scale * static_cast<float>(static_cast<int>(word % 3) - 1) : value;
    values[i] = problem.float8 ? nearest_float8(wanted) : graph::stored(problem.dtype, wanted);
  }
  return values;
}

plan::Trial check(const Problem& problem, const Definition& product, Numbers which) {
  const float small = problem.float8 ? 0x1p-17F : 0x1p-20F;  // the smallest number, or 16 times that of f16
  const float large = problem.float8 ? 1 : 0x1p10F;
  const bool whole = which != Numbers::any;
  const bool scaled = which == Numbers::subnormal_a || which == Numbers::subnormal_b;
  const float scale_of_a = !scaled ? 1 : which == Numbers::subnormal_a ? small : large;
  const float scale_of_b = !scaled ? 1 : which == Numbers::subnormal_b ? small : large;
  plan::Trial trial;
  trial.float16_partials = problem.float16_partials;
  trial.lower = product.lower;
  trial.inputs = {{problem.dtype, product.a}, {problem.dtype, product.b}};
  trial.values = {numbers(product.a, problem, whole, scale_of_a, 1), numbers(product.b, problem, whole, scale_of_b, 2)};
  trial.output = {problem.float8 ? DType::f32 : problem.dtype, product.c};
  std::vector<double> sums(static_cast<std::size_t>(elements(product.c)));
  const auto& values = trial.values;
  product.terms([&](std::size_t a, std::size_t b, std::size_t c) {
    sums[c] += static_cast<double>(values[0][a]) * static_cast<double>(values[1][b]);
  });
  trial.expected.assign(sums.begin(), sums.end());
  if (whole) return trial;
  // In the worst case a sum is rounded after every term. It stays below a few times the square root of their number.
  const bool rough = problem.float16_partials;
  const auto terms = static_cast<double>(product.longest);
  trial.allowed_difference = terms * std::sqrt(terms) * (rough ? 0x1p-11 : 0x1p-23);
  const graph::Narrow* narrow = graph::info(trial.output.dtype).narrow;
  if (narrow != nullptr) trial.allowed_difference += 4 * std::sqrt(terms) * narrow->unit;
  return trial;
}

}  // namespace

plan::Choice gemm_choice(const plan::Lowering& out, const Gemm& gemm, const Problem& problem,
                         const std::vector<GemmKernel>& kernels) {
  plan::Choice choice;
  choice.kind = kind_of(problem);
  choice.key = fmt::format("{} {}x{}x{}x{}{}", choice.kind, problem.batches, problem.rows, problem.columns,
                           problem.k * problem.segments, walk_of(gemm, problem));
  for (const GemmKernel& kernel : kernels) choice.candidates.push_back({kernel.name, kernel.risky});
  choice.rule_is_known = out.target().cpu;
  choice.flops = 2 * static_cast<double>(problem.batches * problem.rows) * static_cast<double>(problem.columns) *
                 static_cast<double>(problem.k * problem.segments);
  choice.problem.inputs = {out.type(gemm.a), out.type(gemm.b)};
  choice.problem.output = out.type(gemm.c);
  choice.problem.float16_partials = problem.float16_partials;
  const TensorType sums{out.type(gemm.b).dtype, {out.type(gemm.b).shape.back()}};
  choice.problem.lower = [gemm, sums](plan::Lowering& alone) {
    Gemm same = gemm;
    same.a = alone.input(0);
    same.b = alone.input(1);
    same.c = alone.output(0);
    same.bias.reset();
    if (same.column_sums) same.column_sums = alone.workspace("sums", sums);
    lower_gemm(alone, same);
  };
  return choice;
}

std::vector<plan::Trial> gemm_checks(std::string_view kind) {
  const Problem problem = problem_of(kind);
  const Definition product = definition_of(problem);
  std::vector<plan::Trial> checks{check(problem, product, Numbers::whole), check(problem, product, Numbers::any)};
  if (problem.dtype == DType::f16) {
    checks.push_back(check(problem, product, Numbers::subnormal_a));
    checks.push_back(check(problem, product, Numbers::subnormal_b));
  }
  const bool patches = problem.operands == Operands::patches_row || problem.operands == Operands::patches_col;
  if (!patches) return checks;
  const Definition tiled = convolution_3x3(problem.operands);
  checks.push_back(check(problem, tiled, Numbers::whole));
  if (problem.dtype != DType::f32) return checks;
  checks.push_back(check(problem, tiled, Numbers::any));
  // Closer than any order of the sums may come in the worst case: about four times what they are off by, and less than
  // they would be if the transforms rounded to fewer bits.
  checks.back().allowed_difference = static_cast<double>(tiled.longest) * 0x1p-22;
  return checks;
}

}  // namespace halfstep::ops
