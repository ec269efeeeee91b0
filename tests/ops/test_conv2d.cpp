#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "reference/conv2d.h"
#include "reference/elementwise.h"
#include "reference/sum.h"
#include "reference/window.h"

using namespace halfstep;
using testing::Check;
using testing::uniform;

namespace {

struct Case {
  Shape images;
  Shape weight;
  Conv2dOptions options;
};

/// One channel, odd numbers, whole quads, more than a tile; kernels of one pixel and of odd shapes; stride, padding and
/// dilation that differ between the axes; groups that are whole quads or not, down to one channel each.
const std::vector<Case> cases{
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
    {{2, 7, 5, 1}, {3, 3, 1, 6}, {.padding = {1, 1}}},
    {{2, 5, 9, 3}, {3, 3, 3, 10}, {.padding = {1, 1}}},
    {{1, 6, 7, 8}, {3, 2, 8, 36}, {.padding = {0, 1}}},
    {{3, 8, 8, 4}, {3, 3, 4, 8}, {.stride = {2, 2}, .padding = {1, 1}}},
    {{1, 11, 9, 5}, {3, 2, 5, 7}, {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 3}}},
    {{2, 9, 4, 6}, {5, 1, 6, 3}, {.stride = {1, 2}, .padding = {4, 0}}},
    {{2, 3, 5, 36}, {1, 1, 36, 7}, {}},
    {{2, 5, 5, 6}, {1, 1, 6, 34}, {.stride = {2, 2}}},
    {{1, 4, 13, 8}, {3, 3, 4, 16}, {.padding = {1, 1}, .groups = 2}},
    {{2, 5, 4, 12}, {1, 1, 4, 12}, {.groups = 3}},
    {{1, 6, 5, 6}, {3, 3, 3, 10}, {.stride = {2, 1}, .padding = {1, 1}, .groups = 2}},
    {{2, 5, 6, 7}, {3, 3, 1, 14}, {.padding = {1, 2}, .dilation = {1, 2}, .groups = 7}},
    {{2, 6, 9, 7}, {3, 3, 1, 7}, {.padding = {1, 1}, .groups = 7}},
    {{1, 7, 8, 5}, {3, 2, 1, 5}, {.stride = {2, 3}, .padding = {2, 1}, .dilation = {1, 2}, .groups = 5}},
};

/// f32 sums of k products; see test_matmul.cpp.
double arithmetic(std::int64_t k) {
  return 1e-6 + static_cast<double>(k) * 0x1p-22;
}

std::string text(const Case& c) {
  return fmt::format("{} with {} stride {} padding {} dilation {} groups {}", to_string(c.images), to_string(c.weight),
                     c.options.stride[0], c.options.padding[0], c.options.dilation[0], c.options.groups);
}

Shape output(const Case& c) {
  return ops::Convolution{c.images, c.weight, c.options}.output("test");
}

Check forward_check(const Case& c) {
  return {.name = "conv2d " + text(c),
          .build = [=](std::span<const Tensor> x) { return conv2d(x[0], x[1], c.options); },
          .inputs = {{uniform(c.images, 1)}, {uniform(c.weight, 2)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::conv2d(x[0], x[1], c.options); },
          .arithmetic = arithmetic(elements(c.weight) / c.weight[3])};
}

Check data_gradient_check(const Case& c) {
  return {
      .name = "data gradient of conv2d " + text(c),
      .build = [=](std::span<const Tensor> x) { return ops::conv2d_data_gradient(x[0], x[1], c.images, c.options); },
      .inputs = {{uniform(output(c), 1)}, {uniform(c.weight, 2)}},
      .reference =
          [=](std::span<const reference::Array> x) {
            return reference::conv2d_data_gradient(x[0], x[1], c.images, c.options);
          },
      .arithmetic = arithmetic(elements(c.weight) / c.weight[2])};
}

Check weight_gradient_check(const Case& c) {
  return {
      .name = "weight gradient of conv2d " + text(c),
      .build = [=](std::span<const Tensor> x) { return ops::conv2d_weight_gradient(x[0], x[1], c.weight, c.options); },
      .inputs = {{uniform(c.images, 1)}, {uniform(output(c), 2)}},
      .reference =
          [=](std::span<const reference::Array> x) {
            return reference::conv2d_weight_gradient(x[0], x[1], c.weight, c.options);
          },
      .arithmetic = arithmetic(elements(output(c)) / c.weight[3])};
}

Check bias_gradient_check(const Case& c) {
  return {.name = "bias gradient of conv2d " + text(c),
          .build =
              [=](std::span<const Tensor> x) {
                return ops::conv2d_parameter_gradients(x[0], x[1], c.weight, c.options)[1];
              },
          .inputs = {{uniform(c.images, 1)}, {uniform(output(c), 2)}},
          .reference =
              [](std::span<const reference::Array> x) {
                return reference::sum(x[1], {0, 1, 2}, false);
              },
          .arithmetic = arithmetic(elements(output(c)) / c.weight[3])};
}

/// The gradient for the weight, with the gradient for the bias added to every row.
Check parameter_gradients_check(const Case& c) {
  Check check = weight_gradient_check(c);
  check.roundings = 2;
  check.build = [=](std::span<const Tensor> x) {
    const auto [weight, bias] = ops::conv2d_parameter_gradients(x[0], x[1], c.weight, c.options);
    return add(weight, bias);
  };
  check.reference = [=](std::span<const reference::Array> x) {
    return reference::zip(reference::conv2d_weight_gradient(x[0], x[1], c.weight, c.options),
                          reference::sum(x[1], {0, 1, 2}, false), [](double a, double b) { return a + b; });
  };
  return check;
}

}  // namespace

TEST_CASE("conv2d") {
  for (const Case& c : cases) testing::check_operator(forward_check(c));
}

TEST_CASE("conv2d with a bias") {
  for (const Case& c : cases) {
    Check check = forward_check(c);
    check.name += " and bias";
    check.build = [=](std::span<const Tensor> x) { return conv2d(x[0], x[1], c.options, x[2]); };
    check.inputs.push_back({uniform(Shape{c.weight[3]}, 3)});
    check.reference = [=](std::span<const reference::Array> x) {
      return reference::zip(reference::conv2d(x[0], x[1], c.options), x[2], [](double y, double b) { return y + b; });
    };
    testing::check_operator(check);
  }
}

TEST_CASE("data gradient of conv2d") {
  for (const Case& c : cases) testing::check_operator(data_gradient_check(c));
}

TEST_CASE("weight gradient of conv2d") {
  for (const Case& c : cases) testing::check_operator(weight_gradient_check(c));
}

TEST_CASE("weight gradient of conv2d together with a bias's") {
  for (const Case& c : cases) {
    Check check = weight_gradient_check(c);
    check.build = [=](std::span<const Tensor> x) {
      return ops::conv2d_parameter_gradients(x[0], x[1], c.weight, c.options)[0];
    };
    testing::check_operator(check);
    testing::check_operator(bias_gradient_check(c));
  }
}

TEST_CASE("long convolutions, whose sums are cut into parts") {
  const Case deep{{1, 3, 3, 260}, {3, 3, 260, 5}, {.padding = {1, 1}}};
  const Case wide{{2, 21, 19, 4}, {3, 3, 4, 5}, {.padding = {1, 1}}};
  testing::check_operator(forward_check(deep));
  testing::check_operator(data_gradient_check({{1, 3, 3, 5}, {3, 3, 5, 260}, {.padding = {1, 1}}}));
  testing::check_operator(weight_gradient_check(wide));
  testing::check_operator(bias_gradient_check(wide));
}

TEST_CASE("gradients of conv2d, and theirs") {
  const Case plain{{1, 4, 3, 2}, {2, 3, 2, 5}, {.stride = {2, 1}, .padding = {1, 1}}};
  const Case grouped{{1, 3, 3, 4}, {2, 2, 2, 6}, {.groups = 2}};
  for (const Case& c : {plain, grouped}) {
    for (Check check :
         {forward_check(c), data_gradient_check(c), weight_gradient_check(c), parameter_gradients_check(c)}) {
      check.roundings += 1;  // the cotangent
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("gradient of conv2d's bias") {
  const Conv2dOptions options{.padding = {1, 1}};
  testing::check_gradient(
      {.name = "conv2d with bias",
       .build = [=](std::span<const Tensor> x) { return conv2d(x[0], x[1], options, x[2]); },
       .inputs = {{uniform(Shape{2, 3, 4, 2}, 1)}, {uniform(Shape{3, 3, 2, 3}, 2)}, {uniform(Shape{3}, 3)}},
       .reference =
           [=](std::span<const reference::Array> x) {
             return reference::zip(reference::conv2d(x[0], x[1], options), x[2],
                                   [](double y, double b) { return y + b; });
           },
       .arithmetic = 4e-6,
       .roundings = 2});
}

TEST_CASE("conv2d says what does not fit") {
  Graph graph = testing::settled_graph();
  const Tensor images = graph.input("images", {2, 5, 5, 6});
  const Tensor weight = graph.input("weight", {3, 3, 3, 8});
  CHECK_THROWS_WITH_AS(conv2d(images, weight),
                       "[conv2d] expected 3 channels for weight {3, 3, 3, 8} in 1 groups, got images {2, 5, 5, 6}",
                       Error);
  CHECK_THROWS_WITH_AS(conv2d(images, weight, {.groups = 4}),
                       "[conv2d] expected groups that divide 6 and 8 channels, got 4", Error);
  CHECK_THROWS_AS(conv2d(images, weight, {.stride = {0, 1}, .groups = 2}), Error);
  CHECK_THROWS_AS(conv2d(images, weight, {.padding = {-1, 0}, .groups = 2}), Error);
  CHECK_THROWS_AS(conv2d(images, weight, {.dilation = {3, 1}, .groups = 2}), Error);
  CHECK_THROWS_AS(conv2d(graph.input("flat", {5, 6}), weight), Error);
  CHECK_THROWS_AS(conv2d(images, graph.input("half", {3, 3, 6, 8}, DType::f16)), Error);
  CHECK_THROWS_AS(conv2d(images, weight, {.groups = 2}, graph.input("bias", {7})), Error);
}

TEST_CASE("conv2d_transpose undoes the shapes of conv2d, and is its transpose") {
  for (const Case& c : cases) {
    // Pixels that the forward convolution ignores on the right and at the bottom reappear as output padding.
    const Shape small = output(c);
    Pair padding{};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t reach = c.options.dilation[i] * (c.weight[i] - 1) + 1;
      padding[i] = (c.images[i + 1] + 2 * c.options.padding[i] - reach) % c.options.stride[i];
    }
    Check check = data_gradient_check(c);
    check.build = [=](std::span<const Tensor> x) { return conv2d_transpose(x[0], x[1], c.options, padding); };
    testing::check_operator(check);
  }
}

TEST_CASE("conv2d_transpose pads its result by whole strides where the dilation is larger") {
  // By the definition: the result without padding, zeros after it, and from that the padding cut off.
  for (const Pair more : {Pair{1, 4}, Pair{2, 3}, Pair{0, 2}}) {
    const Conv2dOptions options{.stride = {1, 2}, .padding = {1, 2}, .dilation = {3, 5}};
    const Shape x{2, 4, 3, 3};
    const Shape whole{2, 3 * 1 + 3 * 1 + 1, 2 * 2 + 5 * 2 + 1, 2};
    const Shape end{2, whole[1] + more[0] - 1, whole[2] + more[1] - 2, 2};
    Check check{.name = "conv2d_transpose",
                .build = [=](std::span<const Tensor> in) { return conv2d_transpose(in[0], in[1], options, more); },
                .inputs = {{uniform(x, 1)}, {uniform(Shape{2, 3, 2, 3}, 2)}},
                .reference =
                    [=](std::span<const reference::Array> in) {
                      const Conv2dOptions unpadded{.stride = options.stride, .dilation = options.dilation};
                      const auto all = reference::conv2d_data_gradient(in[0], in[1], whole, unpadded);
                      return reference::slice(reference::pad(all, {0, 0, 0, 0}, {0, more[0], more[1], 0}), {0, 1, 2, 0},
                                              end, {1, 1, 1, 1});
                    },
                .arithmetic = 4e-6};
    testing::check_operator(check);
    testing::check_gradient(check);
  }
}

TEST_CASE("conv2d_transpose says what does not fit") {
  Graph graph;
  const Tensor x = graph.input("x", {1, 4, 4, 6});
  const Tensor w = graph.input("w", {3, 3, 5, 6});
  CHECK(conv2d_transpose(x, w, {.stride = {2, 2}, .padding = {1, 1}}, {1, 0}).shape() == Shape{1, 8, 7, 5});
  CHECK_THROWS_WITH_AS(conv2d_transpose(x, w, {}, {1, 0}), doctest::Contains("output padding"), Error);
  CHECK_THROWS_WITH_AS(conv2d_transpose(x, w, {.dilation = {1, 2}}, {0, 2}), doctest::Contains("below 2"), Error);
  CHECK_THROWS_WITH_AS(conv2d_transpose(x, w, {.padding = {4, 4}}), doctest::Contains("within the padding"), Error);
  CHECK_THROWS_WITH_AS(conv2d_transpose(x, graph.input("four", {3, 3, 5, 4})), doctest::Contains("[conv2d_transpose]"),
                       Error);
  CHECK(graph.ir().nodes.front().op->name() == "conv2d_transpose");  // by which a precision names it
}
