#include "ops/gemm/matmul.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/rows_of.h"

namespace halfstep {
namespace {

/// The axes before the last two.
Shape batch_axes(const Shape& shape) {
  return {shape.begin(), shape.end() - 2};
}

/// Extents of the last two axes, swapped if `transposed`.
std::pair<std::int64_t, std::int64_t> matrix(const Shape& shape, bool transposed) {
  const std::int64_t first = shape[shape.size() - 2];
  const std::int64_t last = shape.back();
  return transposed ? std::pair{last, first} : std::pair{first, last};
}

ops::Operands operands(const MatmulOptions& options) {
  if (options.transpose_a) return options.transpose_b ? ops::Operands::col_col : ops::Operands::col_row;
  return options.transpose_b ? ops::Operands::row_col : ops::Operands::row_row;
}

/// The distance in quads between matrices of a batch; 0, which repeats the first, if the tensor has no batch.
std::int64_t batch_stride(const Shape& shape) {
  if (shape.size() == 2) return 0;
  return plan::layout(shape).quads_per_row() * shape[shape.size() - 2];
}

/// Sums the gradient of a matrix that was broadcast over a batch.
Tensor over_batch(Tensor gradient) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(gradient.rank() - 2));
  std::iota(axes.begin(), axes.end(), 0);
  return axes.empty() ? gradient : sum(gradient, std::move(axes));
}

/// Products of matrices.
class Matmul final : public graph::Operator {
 public:
  explicit Matmul(MatmulOptions options, bool in_f32 = false) : options_(options), in_f32_(in_f32) {}

  std::string name() const override { return "matmul"; }
  graph::Attributes attributes() const override {
    return {{"transpose_a", options_.transpose_a}, {"transpose_b", options_.transpose_b}};
  }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    const TensorType& a = inputs[0];
    const TensorType& b = inputs[1];
    ops::expect_same_float(name(), a, b);
    if (a.shape.size() < 2 || b.shape.size() < 2) {
      fail(name(), fmt::format("expected matrices, got {} and {}", to_string(a), to_string(b)));
    }
    const auto [m, k] = matrix(a.shape, options_.transpose_a);
    const auto [b_k, n] = matrix(b.shape, options_.transpose_b);
    if (k != b_k) {
      fail(name(), fmt::format("expected {} rows of b for {} columns of a, got {} in {} times {}", k, k, b_k,
                               to_string(a), to_string(b)));
    }
    Shape shape = batch_axes(a.shape.size() > 2 ? a.shape : b.shape);
    if (a.shape.size() > 2 && b.shape.size() > 2 && shape != batch_axes(b.shape)) {
      fail(name(), fmt::format("expected equal batch axes, got {} times {}", to_string(a), to_string(b)));
    }
    shape.insert(shape.end(), {m, n});
    return {{in_f32_ ? DType::f32 : a.dtype, shape}};
  }

  // C = A B:      dA = dC B^T,    dB = A^T dC
  // C = A^T B:    dA = B dC^T,    dB = A dC
  // C = A B^T:    dA = dC B,      dB = dC^T A
  // C = A^T B^T:  dA = B^T dC^T,  dB = dC^T A^T
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const auto [ta, tb] = options_;
    Tensor a = call.inputs[0];
    const Tensor b = call.inputs[1];
    Tensor dc = *call.cotangents[0];
    graph::Gradients gradients(2);
    if (call.needed[0]) {
      const Tensor da = ta ? matmul(b, dc, {tb, true}) : matmul(dc, b, {false, !tb});
      gradients[0] = a.rank() == 2 ? over_batch(da) : da;
    }
    if (call.needed[1]) {
      if (b.rank() == 2 && !ta) {  // the batch's rows form one long matrix
        a = ops::rows_of(a);
        dc = ops::rows_of(dc);
      }
      const Tensor db = tb ? matmul(dc, a, {true, ta}) : matmul(a, dc, {!ta, false});
      gradients[1] = b.rank() == 2 ? over_batch(db) : db;
    }
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    const Shape a = out.input_type(0).shape;
    const Shape b = out.input_type(1).shape;
    const Shape c = out.type(out.output(0)).shape;
    const auto [m, k] = matrix(a, options_.transpose_a);
    ops::Gemm gemm{.operands = operands(options_),
                   .a = out.input(0),
                   .b = out.input(1),
                   .c = out.output(0),
                   .rows = m,
                   .columns = c.back(),
                   .k = k,
                   .batches = elements(batch_axes(c)),
                   .a_batch = batch_stride(a),
                   .b_batch = batch_stride(b),
                   .c_batch = batch_stride(c),
                   .partials = out.partials().matmul};
    if (b.size() == 2 && !options_.transpose_a) {  // one product of all rows
      gemm.rows *= gemm.batches;
      gemm.batches = 1;
    }
    ops::lower_gemm(out, gemm);
  }

 private:
  MatmulOptions options_;
  bool in_f32_;  ///< the result, whatever the operands' type is
};

}  // namespace

Tensor ops::matmul_in_f32(Tensor a, Tensor b, MatmulOptions options) {
  const Tensor inputs[] = {a, b};
  return graph::apply_one(std::make_shared<Matmul>(options, true), inputs);
}

Tensor matmul(Tensor a, Tensor b, MatmulOptions options) {
  return ops::apply<Matmul>({a, b}, options);
}

}  // namespace halfstep
