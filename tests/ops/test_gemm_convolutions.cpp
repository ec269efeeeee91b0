// Tests convolutions and their gradients with every GEMM kernel, whichever the rule prefers.
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <vector>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/kernel_targets.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "reference/conv2d.h"

using namespace halfstep;
using testing::kernel_targets;
using testing::uniform;

namespace {

constexpr double arithmetic = 3e-5;

struct Gradient {
  Shape images;
  Shape weight;
  Conv2dOptions options;
};

}  // namespace

TEST_CASE("every kernel computes convolutions and their gradients") {
  // bf16 is read in words, as f16 is, by kernels that the products above and every other convolution test.
  std::vector<DType> dtypes{DType::f32, DType::f16};
  if (testing::every_variant()) dtypes.push_back(DType::bf16);
  const Shape images{2, 9, 11, 6};
  const Shape weight{3, 2, 6, 70};
  const Conv2dOptions options{.stride = {1, 2}, .padding = {1, 1}};
  const Shape output = ops::Convolution{images, weight, options}.output("test");
  testing::check_operator(
      {.name = "conv2d",
       .build = [=](std::span<const Tensor> x) { return conv2d(x[0], x[1], options); },
       .inputs = {{uniform(images, 1)}, {uniform(weight, 2)}},
       .reference = [=](std::span<const reference::Array> x) { return reference::conv2d(x[0], x[1], options); },
       .arithmetic = arithmetic,
       .dtypes = dtypes,
       .targets = kernel_targets()});
  testing::check_operator(
      {.name = "data gradient",
       .build = [=](std::span<const Tensor> x) { return ops::conv2d_data_gradient(x[0], x[1], images, options); },
       .inputs = {{uniform(output, 1)}, {uniform(weight, 2)}},
       .reference =
           [=](std::span<const reference::Array> x) {
             return reference::conv2d_data_gradient(x[0], x[1], images, options);
           },
       .arithmetic = arithmetic,
       .dtypes = dtypes,
       .targets = kernel_targets()});
  testing::check_operator(
      {.name = "weight gradient",
       .build = [=](std::span<const Tensor> x) { return ops::conv2d_weight_gradient(x[0], x[1], weight, options); },
       .inputs = {{uniform(images, 1)}, {uniform(output, 2)}},
       .reference =
           [=](std::span<const reference::Array> x) {
             return reference::conv2d_weight_gradient(x[0], x[1], weight, options);
           },
       .arithmetic = arithmetic,
       .dtypes = dtypes,
       .targets = kernel_targets()});
}

TEST_CASE("every kernel computes a strided convolution's data gradient phase by phase") {
  const std::vector<Gradient> gradients{
      {{2, 9, 11, 6}, {1, 1, 6, 10}, {.stride = {2, 3}}},  // phases that no tap reaches
      {{2, 7, 3, 4},
       {3, 4, 4, 70},
       {.stride = {4, 5}, .padding = {3, 2}, .dilation = {2, 1}}},  // fewer pixels than strides
      {{3, 6, 8, 8}, {3, 3, 4, 24}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}},
  };
  for (const Gradient& gradient : gradients) {
    const auto& [images, weight, options] = gradient;
    const Shape output = ops::Convolution{images, weight, options}.output("test");
    testing::check_operator(
        {.name = "data gradient",
         .build = [&](std::span<const Tensor> x) { return ops::conv2d_data_gradient(x[0], x[1], images, options); },
         .inputs = {{uniform(output, 1)}, {uniform(weight, 2)}},
         .reference =
             [&](std::span<const reference::Array> x) {
               return reference::conv2d_data_gradient(x[0], x[1], images, options);
             },
         .arithmetic = arithmetic,
         .dtypes = {DType::f32},
         .targets = kernel_targets()});
  }
}

TEST_CASE("kernels of outer products compute weight gradients of any shape") {
  const std::vector<Gradient> gradients{
      {{2, 5, 40, 20}, {3, 3, 20, 24}, {.padding = {1, 1}}},  // five quads of channels, long lines
      {{3, 8, 8, 16}, {2, 2, 8, 24}, {.stride = {1, 2}, .dilation = {2, 3}, .groups = 2}},  // short ones, two groups
      {{2, 6, 7, 3}, {3, 3, 3, 8}, {.padding = {2, 3}}},        // more padding than taps reach
      {{16, 32, 32, 16}, {3, 3, 16, 16}, {.padding = {1, 1}}},  // k in parts, for the caches
  };
  std::vector<plan::Target> outer = kernel_targets();
  std::erase_if(outer, [](const plan::Target& target) { return !target.gemm_kernels.starts_with("outer"); });
  for (const Gradient& gradient : gradients) {
    const auto& [images, weight, options] = gradient;
    const Shape output = ops::Convolution{images, weight, options}.output("test");
    if (outer.empty()) break;
    testing::check_operator(
        {.name = "weight gradient",
         .build = [&](std::span<const Tensor> x) { return ops::conv2d_weight_gradient(x[0], x[1], weight, options); },
         .inputs = {{uniform(images, 1)}, {uniform(output, 2)}},
         .reference =
             [&](std::span<const reference::Array> x) {
               return reference::conv2d_weight_gradient(x[0], x[1], weight, options);
             },
         .arithmetic = arithmetic,
         .dtypes = {DType::f32},
         .targets = outer});
  }
}
