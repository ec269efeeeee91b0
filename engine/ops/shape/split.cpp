#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/operator.h"
#include "ops/expect.h"
#include "ops/shape/slice.h"

namespace halfstep {
namespace {

/// Consecutive parts along axis 1 of a tensor of two or three axes.
class Split final : public graph::Operator {
 public:
  explicit Split(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}

  std::string name() const override { return "split"; }
  graph::Attributes attributes() const override { return {{"sizes", sizes_}}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    ops::expect_float(name(), "a tensor", inputs[0]);
    std::vector<TensorType> parts;
    for (const std::int64_t size : sizes_) {
      parts.push_back(inputs[0]);
      parts.back().shape[1] = size;
    }
    return parts;
  }

  // dx = the gradients of the parts, one after the other; 0 for a part that the loss does not depend on
  graph::Gradients vjp(const graph::Vjp& call) const override {
    std::vector<Tensor> parts;
    for (const std::optional<Tensor>& dy : call.cotangents) {
      if (dy) parts.push_back(*dy);
    }
    if (parts.size() == sizes_.size()) return {concat(parts, 1)};
    return {sum_of_padded(call)};
  }

  void lower(plan::Lowering& out) const override {
    std::vector<ops::WindowAxis> axes(out.input_type(0).shape.size());
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      ops::lower_window(out, out.input(0), out.output(i), axes);
      axes[1].offset += sizes_[i];
    }
  }

 private:
  Tensor sum_of_padded(const graph::Vjp& call) const {
    std::optional<Tensor> sum;
    Shape before(call.inputs[0].shape().size(), 0);
    Shape after = before;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      after[1] = call.inputs[0].dim(1) - before[1] - sizes_[i];
      if (call.cotangents[i]) {
        const Tensor part = pad(*call.cotangents[i], before, after);
        sum = sum ? add(*sum, part) : part;
      }
      before[1] += sizes_[i];
    }
    return *sum;
  }

  std::vector<std::int64_t> sizes_;
};

}  // namespace

std::vector<Tensor> split(Tensor x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  const std::int64_t place = axis < 0 ? axis + x.rank() : axis;
  if (place < 0 || place >= x.rank()) {
    fail("split", fmt::format("expected an axis of {}, got {}", to_string(x.type()), axis));
  }
  const bool positive = std::ranges::all_of(sizes, [&](std::int64_t size) { return size > 0 && size <= x.dim(place); });
  if (sizes.empty() || !positive || std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != x.dim(place)) {
    fail("split", fmt::format("expected positive sizes with a sum of {}, axis {} of {}, got {}", x.dim(place), axis,
                              to_string(x.type()), to_string(sizes)));
  }
  const ops::AxisView view = ops::view_of_axis(x.shape(), static_cast<std::size_t>(place));
  std::vector<std::int64_t> lengths;
  for (const std::int64_t size : sizes) lengths.push_back(size * view.inner);
  const Tensor inputs[] = {reshape(x, view.shape)};
  std::vector<Tensor> parts = graph::apply(std::make_shared<Split>(std::move(lengths)), inputs);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Shape part = x.shape();
    part[static_cast<std::size_t>(place)] = sizes[i];
    parts[i] = reshape(parts[i], std::move(part));
  }
  return parts;
}

}  // namespace halfstep
