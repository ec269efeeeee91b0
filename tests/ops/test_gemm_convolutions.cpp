// Tests convolutions and their gradients with every GEMM kernel, whichever the rule prefers.
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/kernel_targets.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "reference/conv2d.h"
#include "reference/elementwise.h"
#include "reference/sum.h"

using namespace halfstep;
using testing::kernel_targets;
using testing::uniform;

namespace {

struct Product {
  Shape images;
  Shape weight;
  Conv2dOptions options;
  std::vector<DType> dtypes{DType::f32};
  std::vector<plan::Target> targets = kernel_targets();
};

/// A check of one of the convolution's three products, without name, build and reference.
testing::Check check_of(const Product& product, const Shape& first, const Shape& second) {
  testing::Check check;
  check.inputs = {{uniform(first, 1)}, {uniform(second, 2)}};
  check.arithmetic = 3e-5;
  check.dtypes = product.dtypes;
  check.targets = product.targets;
  return check;
}

Shape output_of(const Product& product) {
  return ops::Convolution{product.images, product.weight, product.options}.output("test");
}

void check_forward(const Product& of) {
  testing::Check check = check_of(of, of.images, of.weight);
  check.name = "conv2d";
  check.build = [&](std::span<const Tensor> x) { return conv2d(x[0], x[1], of.options); };
  check.reference = [&](std::span<const reference::Array> x) { return reference::conv2d(x[0], x[1], of.options); };
  testing::check_operator(check);
}

void check_data_gradient(const Product& of) {
  testing::Check check = check_of(of, output_of(of), of.weight);
  check.name = "data gradient";
  check.build = [&](std::span<const Tensor> x) { return ops::conv2d_data_gradient(x[0], x[1], of.images, of.options); };
  check.reference = [&](std::span<const reference::Array> x) {
    return reference::conv2d_data_gradient(x[0], x[1], of.images, of.options);
  };
  testing::check_operator(check);
}

void check_weight_gradient(const Product& of) {
  testing::Check check = check_of(of, of.images, output_of(of));
  check.name = "weight gradient";
  check.build = [&](std::span<const Tensor> x) {
    return ops::conv2d_weight_gradient(x[0], x[1], of.weight, of.options);
  };
  check.reference = [&](std::span<const reference::Array> x) {
    return reference::conv2d_weight_gradient(x[0], x[1], of.weight, of.options);
  };
  testing::check_operator(check);
}

/// In f32: in f16, what is added to is rounded, too.
void check_epilogue(Product of) {
  of.dtypes = {DType::f32};
  testing::Check check = check_of(of, of.images, of.weight);
  check.name = "conv2d, add, relu";
  check.inputs.push_back({uniform(output_of(of), 3)});
  check.build = [&](std::span<const Tensor> x) { return relu(add(conv2d(x[0], x[1], of.options), x[2])); };
  check.reference = [&](std::span<const reference::Array> x) {
    return reference::zip(reference::conv2d(x[0], x[1], of.options), x[2],
                          [](double y, double other) { return std::max(y + other, 0.0); });
  };
  testing::check_operator(check);
}

std::vector<plan::Target> targets_by_address() {
  std::vector<plan::Target> targets = kernel_targets();
  std::erase_if(targets, [](const plan::Target& target) { return !testing::loads_by_address(target); });
  return targets;
}

}  // namespace

TEST_CASE("every kernel computes convolutions and their gradients") {
  Product product{{2, 9, 11, 6}, {3, 2, 6, 70}, {.stride = {1, 2}, .padding = {1, 1}}};
  // bf16 is read in words, as f16 is, by kernels that matrix products and every other convolution test.
  product.dtypes = {DType::f32, DType::f16};
  if (testing::every_variant()) product.dtypes.push_back(DType::bf16);
  check_forward(product);
  check_data_gradient(product);
  check_weight_gradient(product);
}

TEST_CASE("every kernel computes a strided convolution's data gradient phase by phase") {
  // Phases that no tap reaches; fewer pixels than strides, whose taps repeat after half a stride; groups.
  check_data_gradient({{2, 9, 11, 6}, {1, 1, 6, 10}, {.stride = {2, 3}}});
  check_data_gradient({{2, 7, 3, 4}, {3, 4, 4, 70}, {.stride = {4, 5}, .padding = {3, 2}, .dilation = {2, 1}}});
  check_data_gradient({{3, 6, 8, 8}, {3, 3, 4, 24}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}});
}

TEST_CASE("kernels whose taps share pixels compute convolutions of any width") {
  std::vector<plan::Target> targets = kernel_targets();
  std::erase_if(targets, [](const plan::Target& target) { return !target.gemm_kernels.starts_with("runs"); });
  if (targets.empty()) return;
  // Runs of 8, 4, 3, 2 positions and of 1, tiles of 8 and of 16 columns, two and three tiles of rows and of columns;
  // channels that are no whole quads; five taps in a row; groups; taps that never reach a pixel.
  std::vector<Product> products{
      {{2, 9, 8, 3}, {3, 3, 3, 8}, {.padding = {1, 1}}},
      {{3, 5, 12, 4}, {3, 3, 4, 20}, {.padding = {1, 1}}},
      {{2, 4, 13, 6}, {2, 3, 6, 5}, {.padding = {0, 2}}},
      {{1, 12, 16, 16}, {5, 5, 16, 16}, {.padding = {2, 2}}},
      {{2, 6, 14, 24}, {3, 3, 12, 40}, {.padding = {1, 1}, .groups = 2}},
      {{2, 3, 9, 5}, {1, 3, 5, 36}, {.stride = {2, 1}, .padding = {2, 4}}},
  };
  for (Product& product : products) {
    product.targets = targets;
    product.dtypes = {DType::f32, DType::f16};
    if (testing::every_variant()) product.dtypes.push_back(DType::bf16);
    check_forward(product);
    check_data_gradient(product);
  }
}

TEST_CASE("kernels that load by address compute convolutions of few channels, and what follows") {
  const std::vector<plan::Target> targets = targets_by_address();
  if (targets.empty()) return;
  // With borders, which taps before and after the image need, by strides and dilation; without, since all taps are
  // inside the image; too many products to add at once, and more channels than a quad. Whole tiles of columns, and
  // others; rows that are no multiple of those of tiles.
  std::vector<Product> products{
      {{2, 9, 10, 1}, {3, 3, 1, 16}, {.padding = {1, 1}}},
      {{3, 11, 8, 3}, {5, 3, 3, 24}, {.stride = {2, 1}, .padding = {2, 3}, .dilation = {1, 2}}},
      {{2, 13, 7, 4}, {5, 5, 4, 12}, {.padding = {2, 2}}},
      {{3, 9, 9, 2}, {2, 3, 2, 32}, {}},
      {{2, 12, 9, 6}, {5, 5, 6, 16}, {}},
      {{2, 8, 9, 16}, {3, 5, 16, 3}, {.padding = {1, 2}}},
  };
  const bool every = testing::takes_kernels_by_address();
  if (!every) products = {products[0], products[3], products[5]};
  for (Product& product : products) {
    product.targets = targets;
    if (every) product.dtypes.push_back(DType::f16);
    check_forward(product);
    check_data_gradient(product);
    check_epilogue(product);
  }
}

TEST_CASE("kernels that load by address compute convolutions whose tiles are parts of a line") {
  std::vector<plan::Target> targets = targets_by_address();
  if (targets.empty()) return;
  targets.resize(1);
  targets.front().gemm_kernels = "uniform";  // the best by rule
  targets.front().vector_registers = 32;
  // Lines of one tile and of several, of 16, 14, 10 and 12 sums, where one lane has one column, two or four. Taps
  // beside the image on either side, by strides and dilation; rows of taps above it and below, and lines that no tap
  // reaches; no taps outside; borders; several iterations for each tap; k that is no whole quads; groups; parts of k.
  std::vector<Product> products{
      {{2, 5, 32, 16}, {3, 3, 16, 16}, {.padding = {1, 1}}},
      {{2, 4, 14, 8}, {5, 5, 8, 8}, {.padding = {3, 3}}},
      {{1, 9, 28, 8}, {3, 3, 8, 32}, {.stride = {2, 2}, .padding = {1, 1}}},
      {{2, 7, 10, 12}, {3, 3, 12, 16}, {.padding = {2, 3}, .dilation = {2, 3}}},
      {{1, 3, 16, 8}, {3, 3, 8, 64}, {.padding = {5, 1}}},
      {{2, 6, 18, 8}, {3, 3, 8, 24}, {}},
      {{2, 7, 16, 3}, {3, 3, 3, 16}, {.padding = {1, 1}}},
      {{1, 4, 8, 136}, {3, 3, 136, 32}, {.padding = {1, 1}}},
      {{1, 5, 12, 6}, {3, 5, 6, 32}, {.padding = {1, 2}}},
      {{2, 4, 16, 16}, {3, 3, 8, 32}, {.padding = {1, 1}, .groups = 2}},
      {{1, 1, 8, 1600}, {3, 3, 1600, 16}, {.padding = {1, 1}}},
  };
  if (!testing::takes_kernels_by_address()) products.resize(5);
  for (Product& product : products) {
    product.targets = targets;
    check_forward(product);
    check_data_gradient(product);
    check_epilogue(product);
  }
}

TEST_CASE("kernels that load by address compute weight gradients of any shape") {
  const std::vector<plan::Target> targets = targets_by_address();
  if (targets.empty()) return;
  // Five quads of channels and long lines; short ones and two groups; more padding than taps reach; pixels that no tap
  // reaches; one channel, and six, whose tiles have rows of several taps; k in parts, for the caches; and a matrix that
  // is laid out as planes. Lines of several steps, whose ends taps are beside.
  std::vector<Product> products{
      {{2, 5, 40, 20}, {3, 3, 20, 24}, {.padding = {1, 1}}},
      {{2, 3, 72, 8}, {3, 5, 8, 16}, {.padding = {1, 2}}},
      {{3, 8, 8, 16}, {2, 2, 8, 24}, {.stride = {1, 2}, .dilation = {2, 3}, .groups = 2}},
      {{2, 6, 7, 3}, {3, 3, 3, 8}, {.padding = {2, 3}}},
      {{2, 10, 12, 5}, {3, 2, 5, 16}, {.stride = {2, 3}, .dilation = {2, 1}}},
      {{2, 9, 10, 1}, {5, 5, 1, 32}, {.padding = {2, 2}}},
      {{3, 7, 9, 6}, {5, 5, 6, 16}, {.stride = {1, 2}, .padding = {1, 3}}},
      {{16, 32, 32, 16}, {3, 3, 16, 16}, {.padding = {1, 1}}},
      {{1, 3, 7, 800}, {1, 1, 800, 800}, {}},
  };
  for (Product& product : products) {
    product.targets = targets;
    check_weight_gradient(product);
  }
}

TEST_CASE("kernels that load by address compute a bias's gradient, too, from rows of B where they are") {
  const std::vector<plan::Target> targets = targets_by_address();
  if (targets.empty()) return;
  // Lines that are no multiple of four; whole tiles of columns, which are not packed, in one part of k and in several.
  for (const Shape& images : {Shape{3, 17, 19, 6}, Shape{8, 33, 35, 6}}) {
    const Shape weight{3, 2, 6, 32};
    testing::Check check = check_of({images, weight, {}}, images, output_of({images, weight, {}}));
    check.name = "bias gradient";
    check.targets = targets;
    check.build = [&](std::span<const Tensor> x) { return ops::conv2d_parameter_gradients(x[0], x[1], weight, {})[1]; };
    check.reference = [](std::span<const reference::Array> x) { return reference::sum(x[1], {0, 1, 2}, false); };
    testing::check_operator(check);
  }
}
