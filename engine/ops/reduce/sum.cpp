#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>

#include "ops/apply.h"
#include "ops/elementwise/cast.h"
#include "ops/expect.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/broadcast.h"

namespace halfstep {
namespace {

/// Sum or mean over some axes.
class Sum final : public graph::Operator {
 public:
  Sum(std::string name, std::vector<bool> summed, bool keep, bool mean)
      : name_(std::move(name)), summed_(std::move(summed)), keep_(keep), mean_(mean) {}

  std::string name() const override { return name_; }
  graph::Attributes attributes() const override {
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 0; axis < summed_.size(); ++axis) {
      if (summed_[axis]) axes.push_back(static_cast<std::int64_t>(axis));
    }
    return {{"axes", std::move(axes)}, {"keep", keep_}};
  }
  graph::Numerics numerics() const override { return graph::Numerics::reduction; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name_, inputs, 1);
    ops::expect_float(name_, "a tensor", inputs[0]);
    return {{inputs[0].dtype, result_shape(inputs[0].shape, keep_)}};
  }

  // dx = dy repeated along the summed axes; for a mean, divided by the number of elements before it is rounded: a loss
  // scale may be larger than any number of x's type
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const TensorType x = call.inputs[0].type();
    const Tensor dy = reshape(ops::before_cast(*call.cotangents[0]), result_shape(x.shape, true));
    return {ops::expand(dy, x, factor(x.shape))};
  }

  void lower(plan::Lowering& out) const override {
    ops::lower_sum(out, out.input(0), summed_, out.output(0), factor(out.input_type(0).shape));
  }

 private:
  Shape result_shape(const Shape& shape, bool keep) const {
    Shape result;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (!summed_[i]) result.push_back(shape[i]);
      if (summed_[i] && keep) result.push_back(1);
    }
    return result;
  }

  float factor(const Shape& shape) const {
    if (!mean_) return 1;
    const std::int64_t terms = elements(shape) / elements(result_shape(shape, false));
    return static_cast<float>(1.0 / static_cast<double>(terms));
  }

  std::string name_;
  std::vector<bool> summed_;
  bool keep_;
  bool mean_;
};

/// Which axes of a tensor of `rank` axes are named, each at most once; all if none is.
std::vector<bool> marked(const char* op, std::int64_t rank, const std::vector<std::int64_t>& axes) {
  std::vector<bool> result(static_cast<std::size_t>(rank), axes.empty());
  for (const std::int64_t axis : axes) {
    const std::int64_t i = axis < 0 ? axis + rank : axis;
    if (i < 0 || i >= rank) fail(op, fmt::format("expected axes of a tensor of {}, got {}", rank, axis));
    if (result[static_cast<std::size_t>(i)]) fail(op, fmt::format("expected each axis once, got {} twice", axis));
    result[static_cast<std::size_t>(i)] = true;
  }
  return result;
}

}  // namespace

Tensor sum(Tensor x, std::vector<std::int64_t> axes, bool keep) {
  return ops::apply<Sum>({x}, "sum", marked("sum", x.rank(), axes), keep, false);
}

Tensor mean(Tensor x, std::vector<std::int64_t> axes, bool keep) {
  return ops::apply<Sum>({x}, "mean", marked("mean", x.rank(), axes), keep, true);
}

}  // namespace halfstep
