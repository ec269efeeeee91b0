// Operators of the application on integers, which are no labels of a data set.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/labels.h"

using namespace halfstep;

namespace {

/// As a loss over classes takes them: numbers of {n, c} and integers of {n}, which are no labels.
class Lookup final : public CustomOperator {
 public:
  std::string name() const override { return "lookup"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override {
    return {{DType::f32, inputs[1].shape}};
  }
  CustomKernels kernels(const CustomTypes&) const override { return {}; }
  bool keeps_types() const override { return true; }
};

/// Integers of integers.
class Remap final : public CustomOperator {
 public:
  std::string name() const override { return "remap"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  CustomKernels kernels(const CustomTypes&) const override { return {}; }
  bool keeps_types() const override { return true; }
};

}  // namespace

TEST_CASE("an application's own operator: integers that it takes are no labels") {
  Graph graph;
  const Tensor inputs[] = {graph.input("x", {4, 10}), graph.input("places", {4}, DType::u32)};
  const graph::ValueId looked_up = apply_operator(std::make_shared<Lookup>(), inputs)[0].id();
  CHECK(train::classes_of(graph.ir(), std::span(&looked_up, 1), inputs[1].id()).empty());
  const graph::ValueId loss = cross_entropy(inputs[0], inputs[1]).id();
  CHECK(train::classes_of(graph.ir(), std::span(&loss, 1), inputs[1].id()).at(0).count == 10);
}

TEST_CASE("an application's own operator: integers of labels are no labels") {
  Graph graph;
  const Tensor labels = graph.input("labels", {4}, DType::u32);
  const Tensor mapped = apply_operator(std::make_shared<Remap>(), std::span(&labels, 1))[0];
  const graph::ValueId loss = cross_entropy(graph.input("x", {4, 10}), mapped).id();
  CHECK(train::classes_of(graph.ir(), std::span(&loss, 1), labels.id()).empty());
  CHECK(train::judged(graph.ir(), loss)->labels == mapped.id());
}
